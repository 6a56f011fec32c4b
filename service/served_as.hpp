// SPDX-License-Identifier: Apache-2.0
// What clients know of a daemon that serves with TLS. A value and free functions; main thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "service/api_settings.hpp"

namespace vfmgr {

// What clients know of the daemon that serves with these files.
struct ServedAs {
    std::string fingerprint;
    // Names and addresses that requests may be for: the host's, the certificate's, and those that
    // the configuration adds. As host_name() writes them.
    std::set<std::string> hosts;
};
[[nodiscard]] Result<ServedAs> served_as(http::TlsListen const& files, TlsSettings const& tls,
                                         std::vector<std::string> const& names);

void log_certificate_change(std::string const& file, std::string const& fingerprint_before,
                            std::string const& fingerprint);
// Within the last two weeks.
void warn_of_certificate_end(std::string const& file, Time now, Program const& program);

}  // namespace vfmgr
