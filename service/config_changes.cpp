// SPDX-License-Identifier: Apache-2.0
#include "service/config_changes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace vfmgr {
namespace {

std::string words_of(PfBounds const& bounds) {
    std::string words;
    for_each_pf_bound([&](char const* key, auto member) {
        auto const& bound = bounds.*member;
        if (!bound) return;
        words += fmt::format("{}{} = ", words.empty() ? "" : ", ", key);
        if constexpr (requires { bound->front().first; })
            words += fmt::format("{}", texts_of(*bound));
        else
            words += fmt::format("{}", *bound);
    });
    return words;
}

void add_bounds(SettingValues& values, HostBounds const& bounds) {
    if (bounds.addresses)
        values["bounds.addresses"] =
            fmt::format("[{}]", fmt::join(texts_of(*bounds.addresses), ", "));
    if (auto const& holders = bounds.external_holders; holders != HolderBounds{})
        values["bounds.external_holders"] = fmt::format(
            "allowed = {}, uids = [{}]", holders.allowed, fmt::join(texts_of(holders.uids), ", "));
    if (auto words = words_of(bounds.default_pf); !words.empty())
        values["bounds.pfs.default"] = std::move(words);
    for (auto const& [pf, of_pf] : bounds.pfs)
        values["bounds.pfs." + to_string(pf)] = words_of(of_pf);
}

SettingValues values_of(Config const& config) {
    SettingValues values{{"state_dir", config.state_dir},
                         {"console.folder", config.console_folder},
                         {"libvirt_uri", config.rules.libvirt_uri},
                         {"listen.tls.enabled", config.tls.enabled ? "true" : "false"},
                         {"rdma_links.trusted_netdevs",
                          fmt::format("[{}]", fmt::join(config.rules.trusted_netdevs, ", "))}};
    add_values(values, config.unix_socket);
    add_values(values, config.tls);
    add_values(values, config.roles);
    add_limits(values, config.limits, config.events, config.changes);
    values["limits.fleet_changes_burst"] = fmt::format("{}", config.fleet_changes.burst);
    values["limits.fleet_changes_per_second"] = fmt::format("{}", config.fleet_changes.per_second);
    add_bounds(values, config.rules.bounds);
    return values;
}

}  // namespace

std::vector<KeyChange> changes_between(Config const& before, Config const& after) {
    return changes_between(values_of(before), values_of(after));
}

Config applicable(Config const& running, Config wanted) {
    wanted.state_dir = running.state_dir;
    wanted.unix_socket = running.unix_socket;
    wanted.tls.enabled = running.tls.enabled;
    wanted.tls.address = running.tls.address;
    wanted.tls.port = running.tls.port;
    wanted.console_folder = running.console_folder;
    wanted.rules = running.rules;
    return wanted;
}

}  // namespace vfmgr
