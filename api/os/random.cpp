// SPDX-License-Identifier: Apache-2.0
#include "api/os/random.hpp"

#include <sys/random.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
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
    return hex(raw);
}

std::string hex(std::span<std::byte const> bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    text.reserve(2 * bytes.size());
    for (auto const byte : bytes) {
        auto const number = std::to_integer<unsigned>(byte);
        text += digits[number >> 4];
        text += digits[number & 15];
    }
    return text;
}

}  // namespace vfmgr
