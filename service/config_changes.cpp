// SPDX-License-Identifier: Apache-2.0
#include "service/config_changes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

namespace vfmgr {
namespace {

using Values = std::map<std::string, std::string>;

void add_limits(Values& values, Config const& config) {
    auto const& limits = config.limits;
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
    add("event_streams_max", config.events.streams_max);
    add("event_streams_per_peer_max", config.events.streams_per_peer_max);
    add("event_backlog_max", config.events.recent.events);
    add("changes_burst", config.changes.burst);
    add("changes_per_second", config.changes.per_second);
}

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

void add_bounds(Values& values, HostBounds const& bounds) {
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

Values values_of(Config const& config) {
    auto const& [enabled, address, port, certificate, key, client_ca, client_crl, host_names] =
        config.tls;
    Values values{{"state_dir", config.state_dir},
                  {"console.folder", config.console_folder},
                  {"libvirt_uri", config.rules.libvirt_uri},
                  {"listen.unix.path", config.unix_socket.path},
                  {"listen.unix.group", config.unix_socket.group},
                  {"listen.tls.enabled", enabled ? "true" : "false"},
                  {"listen.tls.address", address},
                  {"listen.tls.port", std::to_string(port)},
                  {"listen.tls.certificate_file", certificate},
                  {"listen.tls.key_file", key},
                  {"listen.tls.host_names", fmt::format("[{}]", fmt::join(host_names, ", "))},
                  {"tls.client_ca_file", client_ca},
                  {"tls.client_crl_file", client_crl},
                  {"rdma_links.trusted_netdevs",
                   fmt::format("[{}]", fmt::join(config.rules.trusted_netdevs, ", "))}};
    auto const add_roles = [&](std::string const& table, auto const& roles) {
        for (auto const& [who, role] : roles)
            values[fmt::format("{}.{}", table, who)] = enum_name(role);
    };
    add_roles("roles.groups", config.roles.groups);
    add_roles("roles.uids", config.roles.uids);
    for (auto const& [name, client] : config.roles.clients)
        values["tls.clients." + name] = to_string(client);
    add_bounds(values, config.rules.bounds);
    add_limits(values, config);
    return values;
}

}  // namespace

std::vector<KeyChange> changes_between(Config const& before, Config const& after) {
    auto const olds = values_of(before);
    auto const news = values_of(after);
    auto keys = olds;
    keys.insert(news.begin(), news.end());
    auto const value = [](Values const& values, std::string const& key) {
        auto const found = values.find(key);
        return found == values.end() ? std::string() : found->second;
    };
    std::vector<KeyChange> changes;
    for (auto const& [key, any] : keys)
        if (value(olds, key) != value(news, key))
            changes.push_back({key, value(olds, key), value(news, key)});
    return changes;
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
