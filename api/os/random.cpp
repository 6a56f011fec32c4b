// SPDX-License-Identifier: Apache-2.0
#include "api/os/random.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

namespace vfmgr {

void random_bytes(std::span<std::byte> out) {
    while (!out.empty()) {
        auto const got = ::getrandom(out.data(), out.size(), 0);
        // getrandom() fails only with EINTR here; without randomness no secret can be created.
        if (got < 0 && errno != EINTR) std::abort();
        if (got > 0) out = out.subspan(static_cast<std::size_t>(got));
    }
}

std::uint64_t random_number() {
    std::uint64_t value = 0;
    random_bytes(std::as_writable_bytes(std::span(&value, 1)));
    return value;
}

std::string random_hex(std::size_t bytes) {
    std::vector<std::byte> raw(bytes);
    random_bytes(raw);
    std::string text;
    for (auto const byte : raw) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    return text;
}

}  // namespace vfmgr
