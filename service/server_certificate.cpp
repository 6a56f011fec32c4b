// SPDX-License-Identifier: Apache-2.0
#include "service/server_certificate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "service/log.hpp"

namespace vfmgr {
namespace {

constexpr std::chrono::hours renewed_before{24 * 30};

Result<void> renew(http::TlsListen const& files, std::vector<std::string> const& names,
                   DaemonIs daemon_is, Time now) {
    VFMGR_TRY(auto const before, http::read_certificate(files.certificate_file));
    auto const why = why_renew(before, daemon_is == DaemonIs::starting ? names : before.names, now);
    if (!why) return {};
    VFMGR_CHECK(http::make_self_signed(files.certificate_file, files.key_file, names,
                                       http::Existing::replaced));
    VFMGR_TRY(auto const after, http::certificate_fingerprint(files.certificate_file));
    log(Severity::notice, "the daemon's own certificate is renewed: clients know another one",
        {{"file", files.certificate_file},
         {"reason", *why},
         {"fingerprint_before", before.fingerprint},
         {"fingerprint", after}});
    return {};
}

}  // namespace

std::optional<std::string> why_renew(http::CertificateFacts const& certificate,
                                     std::vector<std::string> const& names, Time now) {
    if (!certificate.made_here) return std::nullopt;
    for (auto const& name : names)
        if (std::ranges::find(certificate.names, name) == certificate.names.end())
            return fmt::format("it lacks {}", name);
    if (certificate.expires_at <= now + renewed_before)
        return "it expires at " + to_rfc3339(certificate.expires_at);
    return std::nullopt;
}

Result<http::TlsListen> tls_files(Config const& config, std::vector<std::string> const& names,
                                  DaemonIs daemon_is, Time now) {
    auto files = tls_listen(config.tls);
    if (!files.certificate_file.empty()) return files;
    files.certificate_file = config.state_dir + "/tls.crt";
    files.key_file = config.state_dir + "/tls.key";
    std::error_code ignored;
    if (std::filesystem::exists(files.certificate_file, ignored))
        VFMGR_CHECK(renew(files, names, daemon_is, now));
    else
        VFMGR_CHECK(http::make_self_signed(files.certificate_file, files.key_file, names));
    return files;
}

}  // namespace vfmgr
