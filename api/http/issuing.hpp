// SPDX-License-Identifier: Apache-2.0
// Parts of a certificate that this program makes, and the files that it is written to. Internal to
// api/http. No state; any thread.
#pragma once

#include <openssl/evp.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/http/http.hpp"
#include "api/http/tls.hpp"

namespace vfmgr::http {

using Key = Handle<EVP_PKEY, EVP_PKEY_free>;

// In the subject of every certificate that is made here.
inline constexpr std::string_view organization = "vfmgr";
// X.520 limits a common name to these.
inline constexpr std::size_t common_name_characters_max = 64;

[[nodiscard]] tl::unexpected<Error> openssl_refused(std::string detail);

struct CertificateIdentity {
    std::string common_name{};
    std::chrono::seconds backdated{};  // valid for clocks that are late by this
    std::chrono::seconds lasts{};      // from now
};
// Sets a random serial number, the subject and the time that it is valid. Not the issuer.
[[nodiscard]] Result<void> set_identity(X509* certificate, CertificateIdentity const& identity);
// Returns "DNS:host" or "IP:10.0.0.1". OpenSSL parses it, so a name must not hold separators.
[[nodiscard]] Result<std::string> alternative_name(std::string const& name);
// Adds extensions, by NID, in OpenSSL's text form: x509v3_config(5).
[[nodiscard]] Result<void> extend(X509* certificate, X509* issuer,
                                  std::vector<std::pair<int, std::string>> const& extensions);

enum class Visibility : unsigned { secret = 0600, shared = 0644 };
// Publishes the file whole and with its final mode, or not at all.
[[nodiscard]] Result<void> publish(std::string const& path, std::string const& content,
                                   Visibility visibility, Existing existing);
[[nodiscard]] Result<Key> load_key(std::string const& key_file);
// A new key is ECDSA P-256, in a file of mode 0600.
[[nodiscard]] Result<Key> load_or_make_key(std::string const& key_file);
// Fails with conflict if the certificate exists.
[[nodiscard]] Result<void> check_absent(std::string const& certificate_file,
                                        std::string const& key_file);

}  // namespace vfmgr::http
