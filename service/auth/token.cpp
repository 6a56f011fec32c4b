// SPDX-License-Identifier: Apache-2.0
#include "service/auth/token.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <array>
#include <span>

namespace vfmgr {
namespace {

std::string hex(std::span<unsigned char const> bytes) {
    std::string text;
    text.reserve(bytes.size() * 2);
    for (auto const byte : bytes) text += fmt::format("{:02x}", byte);
    return text;
}

}  // namespace

Result<NewToken> make_token() {
    std::array<unsigned char, 32> secret{};
    std::array<unsigned char, 4> id{};
    if (RAND_bytes(secret.data(), static_cast<int>(secret.size())) != 1 ||
        RAND_bytes(id.data(), static_cast<int>(id.size())) != 1)
        return fail(Problem::unavailable, "this host has no random numbers for a token",
                    "try again; if that fails, check the kernel's random number generator");
    NewToken token{"vfm_" + hex(secret), hex(id), {}};
    OPENSSL_cleanse(secret.data(), secret.size());
    token.sha256 = token_sha256(token.secret);
    return token;
}

std::string token_sha256(std::string_view secret) {
    std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
    SHA256(reinterpret_cast<unsigned char const*>(secret.data()), secret.size(), digest.data());
    return hex(digest);
}

bool same_digest(std::string_view one, std::string_view other) {
    return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

}  // namespace vfmgr
