// SPDX-License-Identifier: Apache-2.0
// packet_number() for tests/gpu/run_ptx: reads lines "RUN PACKET" in hexadecimal, and writes each
// packet's number, or "none".
#include <charconv>
#include <iostream>
#include <string>
#include <vector>

#include "guest-tools/traffic/pacer.hpp"

namespace {

std::uint64_t number_of(std::string const& hex) {
    std::uint64_t number = 0;
    std::from_chars(hex.data(), hex.data() + hex.size(), number, 16);
    return number;
}

}  // namespace

int main() {
    std::string run, packet;
    while (std::cin >> run >> packet) {
        std::vector<std::byte> bytes;
        for (std::size_t at = 0; at + 1 < packet.size(); at += 2)
            bytes.push_back(static_cast<std::byte>(number_of(packet.substr(at, 2))));
        auto const number = vfmgr::stream::packet_number(bytes, number_of(run));
        std::cout << (number ? std::to_string(*number) : "none") << '\n';
    }
}
