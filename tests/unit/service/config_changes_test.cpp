// SPDX-License-Identifier: Apache-2.0
#include "service/config_changes.hpp"

#include <gmock/gmock.h>

namespace vfmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Differs from the default in every key that vfmgr.toml(5) describes.
Config other() {
    Config config;
    config.state_dir = "/srv";
    config.rules.libvirt_uri = "qemu:///session";
    config.unix_socket = {"/run/x", "ops"};
    config.tls = {true, "::", 443, "/c", "/k", "/ca", "/crl", {"a", "::1"}};
    config.console_folder = "/web";
    config.roles = {{{"ops", Role::admin}}, {{1000, Role::viewer}}, {{"a", Role::operator_}}};
    config.rules.trusted_netdevs = {"bond0", "eno1"};
    config.rules.bounds = {{.vlans = {{{0, 0}, {100, 199}}}, .trust = false},
                           {{PciAddress{0, 1, 0, 0}, {.num_vfs_max = 8}}},
                           {{IpPrefix::parse("10.0.0.0/8").value()}},
                           {true, {{7, 7}}}};
    config.limits = {1,
                     2,
                     3,
                     4,
                     std::chrono::seconds(5),
                     std::chrono::seconds(6),
                     std::chrono::seconds(7),
                     80,
                     std::chrono::seconds(9)};
    config.events = {12, 13, {14}};
    config.changes = {10, 11};
    config.fleet_changes = {12, 13};
    return config;
}

std::vector<std::string> keys(std::vector<KeyChange> const& changes) {
    std::vector<std::string> keys;
    for (auto const& change : changes) keys.push_back(change.key);
    return keys;
}

TEST(ConfigChanges, AreFoundInEveryKey) {
    EXPECT_THAT(changes_between(other(), other()), IsEmpty());
    EXPECT_THAT(
        keys(changes_between({}, other())),
        ElementsAre(
            "bounds.addresses", "bounds.external_holders", "bounds.pfs.0000:01:00.0",
            "bounds.pfs.default", "console.folder", "libvirt_uri", "limits.answer_seconds_max",
            "limits.body_bytes_max", "limits.changes_burst", "limits.changes_per_second",
            "limits.connections_max", "limits.connections_per_peer_max", "limits.event_backlog_max",
            "limits.event_streams_max", "limits.event_streams_per_peer_max",
            "limits.first_request_seconds_max", "limits.fleet_changes_burst",
            "limits.fleet_changes_per_second", "limits.header_bytes_max", "limits.idle_seconds_max",
            "limits.read_seconds_max", "limits.strangers_per_peer_max", "listen.tls.address",
            "listen.tls.certificate_file", "listen.tls.enabled", "listen.tls.host_names",
            "listen.tls.key_file", "listen.tls.port", "listen.unix.group", "listen.unix.path",
            "rdma_links.trusted_netdevs", "roles.groups.ops", "roles.groups.vfmgr",
            "roles.uids.1000", "state_dir", "tls.client_ca_file", "tls.client_crl_file",
            "tls.clients.a"));
}

TEST(ConfigChanges, SayWhatWasAndWhatIs) {
    Config after;
    after.roles.groups = {{"ops", Role::viewer}};
    after.changes.per_second = 5;
    EXPECT_THAT(changes_between({}, after),
                ElementsAre(KeyChange{"limits.changes_per_second", "20", "5"},
                            KeyChange{"roles.groups.ops", "", "viewer"},
                            KeyChange{"roles.groups.vfmgr", "operator", ""}));
}

TEST(ConfigChanges, SayWhatIsBounded) {
    auto const changes = changes_between({}, other());
    EXPECT_EQ(changes[0], (KeyChange{"bounds.addresses", "", "[10.0.0.0/8]"}));
    EXPECT_EQ(changes[1], (KeyChange{"bounds.external_holders", "", "allowed = true, uids = [7]"}));
    EXPECT_EQ(changes[2], (KeyChange{"bounds.pfs.0000:01:00.0", "", "num_vfs_max = 8"}));
    EXPECT_EQ(changes[3].after, "vlans = [\"0\", \"100-199\"], trust = false");
}

TEST(ConfigChanges, WhatARunningDaemonTakesIsToldApart) {
    auto const taken = applicable({}, other());
    EXPECT_THAT(
        keys(changes_between(taken, other())),
        ElementsAre("bounds.addresses", "bounds.external_holders", "bounds.pfs.0000:01:00.0",
                    "bounds.pfs.default", "console.folder", "libvirt_uri", "listen.tls.address",
                    "listen.tls.enabled", "listen.tls.port", "listen.unix.group",
                    "listen.unix.path", "rdma_links.trusted_netdevs", "state_dir"));
    EXPECT_EQ(taken.roles, other().roles);
    EXPECT_EQ(taken.changes, other().changes);
    EXPECT_EQ(taken.tls.client_ca_file, "/ca");
    EXPECT_EQ(taken.tls.host_names, other().tls.host_names);
}

}  // namespace
}  // namespace vfmgr
