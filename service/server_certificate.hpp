// SPDX-License-Identifier: Apache-2.0
// The certificate by which clients know this daemon over TLS: the operator's, or one of its own.
// Free functions; main thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "service/config.hpp"
#include "service/served_as.hpp"

namespace vfmgr {

// Says why the daemon makes its certificate again: it lacks one of the names, or ends within 30
// days. nullopt: it is good, or the daemon did not make it. Names that the host no longer has do no
// harm; a certificate without them would have another fingerprint, which clients do not expect.
[[nodiscard]] std::optional<std::string> why_renew(http::CertificateFacts const& certificate,
                                                   std::vector<std::string> const& names, Time now);

// running: a new name of the host is no reason to renew, since clients would meet an unexpected
// certificate when nobody did anything.
enum class DaemonIs { starting, running };

// Returns where the API listens with TLS, and with which files. Where the configuration names none,
// they are in state_dir, and are made for `names`, at first and when why_renew() says so; that is
// logged, with both fingerprints.
[[nodiscard]] Result<http::TlsListen> tls_files(Config const& config,
                                                std::vector<std::string> const& names,
                                                DaemonIs daemon_is, Time now);

}  // namespace vfmgr
