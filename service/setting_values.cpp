// SPDX-License-Identifier: Apache-2.0
#include "service/setting_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "service/log.hpp"

namespace vfmgr {

void add_values(SettingValues& values, UnixSettings const& unix_socket) {
    values["listen.unix.path"] = unix_socket.path;
    values["listen.unix.group"] = unix_socket.group;
}

void add_values(SettingValues& values, TlsSettings const& tls) {
    auto const& [enabled, address, port, certificate, key, client_ca, client_crl, host_names] = tls;
    values["listen.tls.address"] = address;
    values["listen.tls.port"] = std::to_string(port);
    values["listen.tls.certificate_file"] = certificate;
    values["listen.tls.key_file"] = key;
    values["listen.tls.host_names"] = fmt::format("[{}]", fmt::join(host_names, ", "));
    values["tls.client_ca_file"] = client_ca;
    values["tls.client_crl_file"] = client_crl;
}

void add_values(SettingValues& values, RoleSettings const& roles) {
    for (auto const& [group, role] : roles.groups)
        values["roles.groups." + group] = enum_name(role);
    for (auto const& [uid, role] : roles.uids)
        values[fmt::format("roles.uids.{}", uid)] = enum_name(role);
    for (auto const& [name, client] : roles.clients)
        values["tls.clients." + name] = to_string(client);
}

void add_limits(SettingValues& values, http::Limits const& limits, EventStreamLimits const& events,
                RateLimit const& changes) {
    auto const add = [&](char const* key, auto value) {
        values[std::string("limits.") + key] = fmt::format("{}", value);
    };
    add("body_bytes_max", limits.body_bytes_max);
    add("header_bytes_max", limits.header_bytes_max);
    add("connections_max", limits.connections_max);
    add("connections_per_peer_max", limits.connections_per_peer_max);
    add("read_seconds_max", limits.read_seconds_max.count());
    add("idle_seconds_max", limits.idle_seconds_max.count());
    add("answer_seconds_max", limits.answer_seconds_max.count());
    add("strangers_per_peer_max", limits.strangers_per_peer_max);
    add("first_request_seconds_max", limits.first_request_seconds_max.count());
    add("event_streams_max", events.streams_max);
    add("event_streams_per_peer_max", events.streams_per_peer_max);
    add("event_backlog_max", events.recent.events);
    add("changes_burst", changes.burst);
    add("changes_per_second", changes.per_second);
}

std::vector<KeyChange> changes_between(SettingValues const& before, SettingValues const& after) {
    auto keys = before;
    keys.insert(after.begin(), after.end());
    auto const value = [](SettingValues const& values, std::string const& key) {
        auto const found = values.find(key);
        return found == values.end() ? std::string() : found->second;
    };
    std::vector<KeyChange> changes;
    for (auto const& [key, any] : keys)
        if (value(before, key) != value(after, key))
            changes.push_back({key, value(before, key), value(after, key)});
    return changes;
}

void log_changes(std::vector<KeyChange> const& taken, std::vector<KeyChange> const& later,
                 Program const& program) {
    for (auto const& [key, before, after] : taken)
        log(Severity::notice, "configuration changed",
            {{"key", key}, {"from", before}, {"to", after}});
    for (auto const& [key, before, after] : later)
        log(Severity::warning, "configuration changed, but only a restart applies it",
            {{"key", key},
             {"from", before},
             {"to", after},
             {"remedy", "systemctl restart " + program.unit}});
}

Result<void> lacks_no_group(std::vector<std::string> const& unknown,
                            std::vector<std::string> const& unknown_before) {
    for (auto const& group : unknown)
        if (std::ranges::find(unknown_before, group) == unknown_before.end())
            return fail(Problem::not_found,
                        fmt::format("this host has no group '{}': roles.groups.{}", group, group),
                        "see: getent group " + group);
    return {};
}

}  // namespace vfmgr
