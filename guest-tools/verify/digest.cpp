// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/digest.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstdlib>

#include "guest-tools/verify/handles.hpp"

namespace vfmgr::verify {

std::string to_hex(std::span<std::byte const> bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (auto const byte : bytes) {
        text += digits[std::to_integer<std::size_t>(byte >> 4)];
        text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
    }
    return text;
}

std::string digest_hex(std::string_view nonce, std::span<std::byte const> bytes) {
    Handle<EVP_MD_CTX, EVP_MD_CTX_free> const context(EVP_MD_CTX_new());
    std::array<std::byte, 32> digest{};
    auto* out = reinterpret_cast<unsigned char*>(digest.data());
    bool const done = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1 &&
                      EVP_DigestUpdate(context.get(), nonce.data(), nonce.size()) == 1 &&
                      EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1 &&
                      EVP_DigestFinal_ex(context.get(), out, nullptr) == 1;
    if (!done) std::abort();  // out of memory, or an OpenSSL without SHA-256
    return to_hex(digest);
}

}  // namespace vfmgr::verify
