// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/reload.hpp"

#include "service/auth/origin.hpp"
#include "service/host_names.hpp"
#include "service/log.hpp"
#include "service/log_failure.hpp"
#include "service/setting_values.hpp"

namespace vfmgr::fleet {

ResolvedAccess resolve_access(Config const& config) {
    auto const& [groups, uids, clients] = config.roles;
    auto [rules, unknown] = resolve_roles(groups, uids, clients);
    rules.program = this_program();
    return {{std::move(rules), config.changes, {}}, std::move(unknown)};
}

std::vector<std::string> names_of(Config const& config) {
    auto names = host_names({});
    constexpr std::string_view https = "https://";
    auto const own = parse_authority(std::string_view(config.url).substr(https.size()));
    if (own) names.push_back(own->host);
    return names;
}

void Reload::begin(Config config, std::vector<std::string> unknown_groups,
                   std::string fingerprint) {
    config_ = std::move(config);
    unknown_groups_ = std::move(unknown_groups);
    fingerprint_ = std::move(fingerprint);
}

void Reload::run() {
    auto const wanted = load_();
    auto const applied = wanted ? apply(*wanted) : Result<void>(fail(wanted.error()));
    if (!applied)
        return log_failure("the configuration is not reloaded: the one before stays in force",
                           applied.error());
    auto taken = applicable(config_, *wanted);
    log_changes(changes_between(values_of(config_), values_of(taken)),
                changes_between(values_of(taken), values_of(*wanted)), this_program());
    config_ = std::move(taken);
    log(Severity::notice, "configuration reloaded");
}

// What can fail comes first.
Result<void> Reload::apply(Config const& wanted) {
    auto access = resolve_access(wanted);
    VFMGR_CHECK(lacks_no_group(access.unknown_groups, unknown_groups_));
    auto const files = tls_listen(applicable(config_, wanted));
    VFMGR_CHECK(http::check_certificate(files));
    VFMGR_TRY(auto served, served_as(files, wanted.tls, names_of(wanted)));
    VFMGR_CHECK(server_.renew(files));
    log_certificate_change(files.certificate_file, fingerprint_, served.fingerprint);
    fingerprint_ = std::move(served.fingerprint);
    access.rules.hosts = std::move(served.hosts);
    server_.limit(wanted.limits);
    rules_.set(std::move(access.rules));
    server_.cut(http::lapsed);
    unknown_groups_ = std::move(access.unknown_groups);
    return {};
}

void Reload::look_after_certificate(Time now) const {
    warn_of_certificate_end(config_.tls.certificate_file, now, this_program());
}

}  // namespace vfmgr::fleet
