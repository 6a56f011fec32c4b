// SPDX-License-Identifier: Apache-2.0
// A CA of one's own, which signs certificates for the replicas of a fleet. Its key stays where it
// was made: what signs runs there. Blocks on files; any thread.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "api/http/http.hpp"

namespace vfmgr::http {

struct CertificateAuthority {  // files, PEM
    std::string certificate_file{};
    std::string key_file{};
};

// Makes a CA in `folder` (ca.pem; ca.key of mode 0600), which is made if it is missing: ECDSA
// P-256, for 20 years; it signs no other CA. Nothing is overwritten: conflict if there is one.
[[nodiscard]] Result<CertificateAuthority> make_authority(std::string const& folder,
                                                          std::string const& name);

struct CertificateRequest {
    std::string common_name{};         // 1 to 64 characters
    std::vector<std::string> uris{};   // with a scheme
    std::vector<std::string> names{};  // DNS names and addresses
    bool for_servers = false;
    bool for_clients = false;
    std::chrono::days lasts{365};
};
struct IssuedFiles {
    std::string certificate_file{};  // PEM: the certificate, then the CA's
    std::string key_file{};          // PEM, mode 0600; kept if it exists, so that pins of it hold
};
// Signs a certificate. Valid from an hour ago, for hosts whose clock is late. An existing
// certificate is replaced if that is asked for, in one step.
[[nodiscard]] Result<void> issue(CertificateAuthority const& authority,
                                 CertificateRequest const& request, IssuedFiles const& into,
                                 Existing existing = Existing::kept);

}  // namespace vfmgr::http
