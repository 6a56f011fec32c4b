// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/digest.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstdlib>

#include "api/os/handle.hpp"
#include "api/os/random.hpp"

namespace vfmgr::verify {

std::string digest_hex(std::string_view nonce, std::span<std::byte const> bytes) {
    Handle<EVP_MD_CTX, EVP_MD_CTX_free> const context(EVP_MD_CTX_new());
    std::array<unsigned char, 32> digest{};
    bool const done = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1 &&
                      EVP_DigestUpdate(context.get(), nonce.data(), nonce.size()) == 1 &&
                      EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) == 1 &&
                      EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) == 1;
    if (!done) std::abort();  // out of memory, or an OpenSSL without SHA-256
    return hex(std::as_bytes(std::span(digest)));
}

}  // namespace vfmgr::verify
