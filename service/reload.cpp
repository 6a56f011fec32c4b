// SPDX-License-Identifier: Apache-2.0
#include "service/reload.hpp"

#include "service/config_changes.hpp"
#include "service/log.hpp"
#include "service/log_failure.hpp"
#include "service/server_certificate.hpp"

namespace vfmgr {

ResolvedAccess resolve_access(Config const& config) {
    auto const& [groups, uids, clients] = config.roles;
    auto [rules, unknown] = resolve_roles(groups, uids, clients);
    return {{std::move(rules), config.changes, {}, config.fleet_changes}, std::move(unknown)};
}

void Reload::run() {
    auto wanted = reloaded_.load();
    auto const applied = wanted ? apply(*wanted) : Result<void>(fail(wanted.error()));
    if (!applied)
        return log_failure("the configuration is not reloaded: the one before stays in force",
                           applied.error());
    auto const taken = applicable(running_.config, *wanted);
    log_changes(changes_between(running_.config, taken), changes_between(taken, *wanted),
                Program());
    running_.config = taken;
    log(Severity::notice, "configuration reloaded");
}

// What can fail comes first.
Result<void> Reload::apply(Config const& wanted) {
    auto access = resolve_access(wanted);
    VFMGR_CHECK(lacks_no_group(access.unknown_groups, running_.unknown_groups));
    VFMGR_CHECK(http::check_certificate(tls_listen(wanted.tls)));
    if (running_.config.tls.enabled) {
        VFMGR_TRY(access.rules.hosts, serve_tls(applicable(running_.config, wanted)));
    }
    reloaded_.server.limit(wanted.limits);
    reloaded_.streams.limit(wanted.events);
    reloaded_.rules.set(std::move(access.rules));
    reloaded_.server.cut(http::lapsed);
    running_.unknown_groups = std::move(access.unknown_groups);
    return {};
}

Result<std::set<std::string>> Reload::serve_tls(Config const& wanted) {
    auto const names = reloaded_.names();
    VFMGR_TRY(auto const files, tls_files(wanted, names, DaemonIs::running, reloaded_.clock.now()));
    VFMGR_TRY(auto served, served_as(files, wanted.tls, names));
    VFMGR_CHECK(reloaded_.server.renew(reloaded_.fleet.files_to_serve(files, reloaded_.server)));
    log_certificate_change(files.certificate_file, running_.fingerprint, served.fingerprint);
    running_.fingerprint = std::move(served.fingerprint);
    return std::move(served.hosts);
}

void Reload::look_after_certificate() {
    auto const& tls = running_.config.tls;
    if (!tls.enabled) return;
    if (tls.certificate_file.empty()) {
        if (auto const served = serve_tls(running_.config); !served)
            log_failure("the daemon's own certificate is not renewed", served.error());
        return;
    }
    warn_of_certificate_end(tls.certificate_file, reloaded_.clock.now(), Program());
}

}  // namespace vfmgr
