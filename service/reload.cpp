// SPDX-License-Identifier: Apache-2.0
#include "service/reload.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "service/config_changes.hpp"
#include "service/log.hpp"
#include "service/server_certificate.hpp"

namespace vfmgr {
namespace {

constexpr std::chrono::hours warned_before{24 * 14};

// A group of a new configuration may be misspelt, and one that was there before may be missing only
// because a directory service is down: neither may take roles away.
Result<void> lacks_no_group(std::vector<std::string> const& unknown,
                            std::vector<std::string> const& unknown_before) {
    for (auto const& group : unknown)
        if (std::ranges::find(unknown_before, group) == unknown_before.end())
            return fail(Problem::not_found,
                        fmt::format("this host has no group '{}': roles.groups.{}", group, group),
                        "see: getent group " + group);
    return {};
}

void log_changes(Config const& running, Config const& wanted) {
    for (auto const& [key, before, after] : changes_between(running, applicable(running, wanted)))
        log(Severity::notice, "configuration changed",
            {{"key", key}, {"from", before}, {"to", after}});
    for (auto const& [key, before, after] : changes_between(applicable(running, wanted), wanted))
        log(Severity::warning, "configuration changed, but only a restart applies it",
            {{"key", key},
             {"from", before},
             {"to", after},
             {"remedy", "systemctl restart vfmgrd"}});
}

void log_failure(std::string_view message, Error const& error) {
    log(Severity::error, message,
        {{"detail", detail_with_causes(error)}, {"remedy", error.remedy}});
    log_violations(error);
}

}  // namespace

ResolvedAccess resolve_access(Config const& config) {
    auto const& [groups, uids, clients] = config.roles;
    auto [rules, unknown] = resolve_roles(groups, uids, clients);
    return {{std::move(rules), config.changes, {}}, std::move(unknown)};
}

void log_violations(Error const& error) {
    for (auto const& violation : error.violations)
        log(Severity::error, violation.detail, {{"at", violation.pointer}});
}

void Reload::run() {
    auto wanted = reloaded_.load();
    auto const applied = wanted ? apply(*wanted) : Result<void>(fail(wanted.error()));
    if (!applied)
        return log_failure("the configuration is not reloaded: the one before stays in force",
                           applied.error());
    log_changes(running_.config, *wanted);
    running_.config = applicable(running_.config, std::move(*wanted));
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
    VFMGR_CHECK(reloaded_.server.renew(files));
    if (served.fingerprint != running_.fingerprint)
        log(Severity::notice, "the certificate of TLS changed",
            {{"file", files.certificate_file},
             {"fingerprint_before", running_.fingerprint},
             {"fingerprint", served.fingerprint}});
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
    auto const facts = http::read_certificate(tls.certificate_file);
    if (facts && facts->expires_at <= reloaded_.clock.now() + warned_before)
        log(Severity::warning, "the certificate of TLS expires soon",
            {{"file", tls.certificate_file},
             {"expires_at", to_rfc3339(facts->expires_at)},
             {"remedy", "replace it, then: systemctl reload vfmgrd"}});
}

}  // namespace vfmgr
