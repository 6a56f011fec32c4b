// SPDX-License-Identifier: Apache-2.0
#include "service/served_as.hpp"

#include "service/auth/origin.hpp"
#include "service/log.hpp"

namespace vfmgr {
namespace {

constexpr std::chrono::hours warned_before{24 * 14};

}  // namespace

Result<ServedAs> served_as(http::TlsListen const& files, TlsSettings const& tls,
                           std::vector<std::string> const& names) {
    VFMGR_TRY(auto const certificate, http::read_certificate(files.certificate_file));
    ServedAs served{certificate.fingerprint, {"localhost", "127.0.0.1", "::1"}};
    for (auto const* const list : {&names, &certificate.names, &tls.host_names})
        for (auto const& name : *list)
            if (auto host = host_name(name)) served.hosts.insert(std::move(*host));
    return served;
}

void log_certificate_change(std::string const& file, std::string const& fingerprint_before,
                            std::string const& fingerprint) {
    if (fingerprint == fingerprint_before) return;
    log(Severity::notice, "the certificate of TLS changed",
        {{"file", file}, {"fingerprint_before", fingerprint_before}, {"fingerprint", fingerprint}});
}

void warn_of_certificate_end(std::string const& file, Time now, Program const& program) {
    auto const facts = http::read_certificate(file);
    if (!facts || facts->expires_at > now + warned_before) return;
    log(Severity::warning, "the certificate of TLS expires soon",
        {{"file", file},
         {"expires_at", to_rfc3339(facts->expires_at)},
         {"remedy", "replace it, then: " + reload_command(program)}});
}

}  // namespace vfmgr
