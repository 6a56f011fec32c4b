// SPDX-License-Identifier: Apache-2.0
#include "service/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/repository.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class ConfigTest : public ::testing::Test {
  protected:
    void SetUp() override { std::filesystem::create_directory(folder_ / "conf.d"); }

    void write(std::string const& name, std::string const& content) {
        std::ofstream(folder_ / name) << content;
    }
    std::string path(std::string const& name) const { return (folder_ / name).string(); }
    Result<Config> load() const { return load_config({path("vfmgr.toml"), path("conf.d")}); }
    Error refused() const {
        auto const config = load();
        EXPECT_FALSE(config);
        return config ? Error{} : config.error();
    }

    test::TemporaryFolder temporary_;
    std::filesystem::path const folder_ = temporary_.path();
};

TEST_F(ConfigTest, NoFilesAtAllAreTheDefaults) {
    auto const config = load_config({path("none.toml"), path("none.d")});
    ASSERT_TRUE(config) << config.error().detail;
    EXPECT_EQ(config->state_dir, "/var/lib/vfmgr");
    EXPECT_EQ(config->rules.libvirt_uri, "qemu:///system");
    EXPECT_EQ(config->unix_socket, UnixSettings{});
    EXPECT_EQ(config->unix_socket.path, "/run/vfmgr/vfmgr.sock");
    EXPECT_FALSE(config->tls.enabled);
    EXPECT_EQ(config->tls.address, "127.0.0.1");
    EXPECT_EQ(config->tls.port, 8470);
    EXPECT_THAT(config->roles.groups, ElementsAre(Pair("vfmgr", Role::operator_)));
    EXPECT_THAT(config->roles.uids, IsEmpty());
    EXPECT_THAT(config->rules.trusted_netdevs, IsEmpty()) << "nobody is trusted unasked";
    EXPECT_EQ(config->limits.body_bytes_max, http::Limits{}.body_bytes_max);
}

TEST_F(ConfigTest, AFileThatSomebodyNamedIsThere) {
    auto const config = load_config({path("none.toml"), path("none.d"), true});
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().detail, path("none.toml") + ": can't be read: ENOENT");
}

// Otherwise the next restart would find it, and the daemon would be down then.
TEST_F(ConfigTest, WhatItNamesIsLookedFor) {
    Config config;
    config.unix_socket.group = "root";
    config.roles.groups = {{"root", Role::viewer}};
    auto const violations = [&] {
        auto const usable = check_named(config);
        return usable ? std::vector<Violation>{} : usable.error().violations;
    };
    EXPECT_THAT(violations(), IsEmpty());
    config.unix_socket.group = "no-such-group";
    config.roles.groups["nor-this"] = Role::admin;
    EXPECT_EQ(violations(), (std::vector<Violation>{
                                {"listen.unix.group", "this host has no group 'no-such-group'"},
                                {"roles.groups.nor-this", "this host has no group 'nor-this'"}}));
    config.unix_socket.group = "root";
    config.roles.groups.erase("nor-this");

    config.tls.certificate_file = path("tls.crt");
    config.tls.key_file = path("tls.key");
    auto const missing = violations();
    ASSERT_EQ(missing.size(), 1U);
    EXPECT_EQ(missing[0].pointer, "listen.tls");
    EXPECT_THAT(missing[0].detail, HasSubstr("can't load the certificate " + path("tls.crt")));
    ASSERT_TRUE(http::make_self_signed(path("tls.crt"), path("tls.key"), {"localhost"}));
    EXPECT_THAT(violations(), IsEmpty());
    ASSERT_TRUE(http::make_self_signed(path("other.crt"), path("other.key"), {"localhost"}));
    config.tls.key_file = path("other.key");
    EXPECT_THAT(violations().at(0).detail, HasSubstr("can't use the key " + path("other.key")));
    config.tls = {};
    config.tls.client_ca_file = path("ca.pem");
    EXPECT_THAT(violations().at(0).detail,
                HasSubstr("can't load the client CAs in " + path("ca.pem")));
}

// The example that the package installs, as shipped and with every line enabled.
TEST_F(ConfigTest, ThePackagedExample) {
    std::ifstream stream(test::repository() / "deploy/config/vfmgr.toml");
    ASSERT_TRUE(stream);
    std::string in_force;
    std::string untouched;
    int keys = 0;
    for (std::string line; std::getline(stream, line);) {
        untouched += line + '\n';
        bool const key = line.size() > 1 && line[0] == '#' && line[1] != ' ';
        keys += key ? 1 : 0;
        in_force += (key ? line.substr(1) : line) + '\n';
    }
    EXPECT_GE(keys, 8);
    for (auto const& content : {untouched, in_force}) {
        write("vfmgr.toml", content);
        auto const config = load();
        ASSERT_TRUE(config) << config.error().detail;
        EXPECT_EQ(config->state_dir, Config{}.state_dir);
        EXPECT_EQ(config->tls.port, Config{}.tls.port);
        EXPECT_EQ(config->roles.groups, Config{}.roles.groups);
    }
}

TEST_F(ConfigTest, EveryKey) {
    write("vfmgr.toml", R"(
state_dir = "/srv/vfmgr"
libvirt_uri = "qemu+unix:///system?socket=/run/x"
[listen.unix]
path = "/run/other.sock"
group = "ops"
[listen.tls]
enabled = true
address = "::"
port = 443
certificate_file = "/etc/c.pem"
key_file = "/etc/k.pem"
[tls]
client_ca_file = "/etc/ca.pem"
client_crl_file = "/etc/crl.pem"
[tls.clients]
"spiffe://fleet/a" = "operator"
b = "viewer"
[guest_plane]
vsock_port = 8471
[roles.groups]
ops = "admin"
watch = "viewer"
[roles.uids]
1000 = "operator"
[rdma_links]
trusted_netdevs = ["bond0", "eno2"]
[limits]
body_bytes_max = 2048
header_bytes_max = 4096
connections_max = 7
connections_per_peer_max = 3
read_seconds_max = 1
idle_seconds_max = 2
answer_seconds_max = 3600
strangers_per_peer_max = 2
first_request_seconds_max = 5
changes_burst = 11
changes_per_second = 4
fleet_changes_burst = 12
fleet_changes_per_second = 5
)");
    auto const config = load();
    ASSERT_TRUE(config) << config.error().detail;
    EXPECT_EQ(config->state_dir, "/srv/vfmgr");
    EXPECT_EQ(config->rules.libvirt_uri, "qemu+unix:///system?socket=/run/x");
    EXPECT_EQ(config->unix_socket, (UnixSettings{"/run/other.sock", "ops"}));
    EXPECT_EQ(config->tls,
              (TlsSettings{
                  true, "::", 443, "/etc/c.pem", "/etc/k.pem", "/etc/ca.pem", "/etc/crl.pem", {}}));
    EXPECT_THAT(config->roles.clients,
                ElementsAre(Pair("b", Role::viewer), Pair("spiffe://fleet/a", Role::operator_)));
    EXPECT_THAT(config->roles.groups,
                ElementsAre(Pair("ops", Role::admin), Pair("vfmgr", Role::operator_),
                            Pair("watch", Role::viewer)));
    EXPECT_THAT(config->roles.uids, ElementsAre(Pair(1000u, Role::operator_)));
    EXPECT_THAT(config->rules.trusted_netdevs, ElementsAre("bond0", "eno2"));
    EXPECT_EQ(config->limits.body_bytes_max, 2048u);
    EXPECT_EQ(config->limits.header_bytes_max, 4096u);
    EXPECT_EQ(config->limits.connections_max, 7u);
    EXPECT_EQ(config->limits.connections_per_peer_max, 3u);
    EXPECT_EQ(config->limits.read_seconds_max, std::chrono::seconds(1));
    EXPECT_EQ(config->limits.idle_seconds_max, std::chrono::seconds(2));
    EXPECT_EQ(config->limits.answer_seconds_max, std::chrono::seconds(3600));
    EXPECT_EQ(config->limits.strangers_per_peer_max, 2u);
    EXPECT_EQ(config->limits.first_request_seconds_max, std::chrono::seconds(5));
    EXPECT_EQ(config->changes, (RateLimit{.burst = 11, .per_second = 4}));
    EXPECT_EQ(config->fleet_changes, (RateLimit{.burst = 12, .per_second = 5}));
}

TEST_F(ConfigTest, StreamsOfEventsHaveLimits) {
    write("vfmgr.toml",
          "[limits]\nevent_streams_max = 9\nevent_streams_per_peer_max = 8\n"
          "event_backlog_max = 16\n");
    auto const config = load();
    ASSERT_TRUE(config) << config.error().detail;
    EXPECT_EQ(config->events, (EventStreamLimits{9, 8, {16}}));
}

TEST_F(ConfigTest, LaterFilesWinKeyByKey) {
    write("vfmgr.toml", "state_dir = '/a'\n[listen.tls]\nport = 1\naddress = '0.0.0.0'\n");
    write("conf.d/20-b.toml", "[listen.tls]\nport = 3\n");
    write("conf.d/10-a.toml", "[listen.tls]\nport = 2\n[roles.groups]\nvfmgr = 'none'\n");
    write("conf.d/30-c.toml.bak", "nonsense");
    auto const config = load();
    ASSERT_TRUE(config) << config.error().detail;
    EXPECT_EQ(config->state_dir, "/a");
    EXPECT_EQ(config->tls.port, 3);
    EXPECT_EQ(config->tls.address, "0.0.0.0");
    EXPECT_THAT(config->roles.groups, IsEmpty());
}

TEST_F(ConfigTest, BoundsAreOfAllPfsAndOfOne) {
    EXPECT_EQ(load().value().rules.bounds, HostBounds{}) << "everything is allowed";
    write("vfmgr.toml", R"([bounds]
addresses = ["192.168.0.0/16"]
[bounds.pfs.default]
vlans = ["0", "100-199"]
trust = false
[bounds.pfs."0000:01:00.0"]
managed = true
num_vfs_max = 8
spoofchk_off = false
drivers = ["vfio-pci"]
firmware = false
)");
    auto const config = load();
    ASSERT_TRUE(config) << config.error().detail;
    HostBounds bounds;
    bounds.addresses = {IpPrefix::parse("192.168.0.0/16").value()};
    bounds.default_pf = {.vlans = {{{0, 0}, {100, 199}}}, .trust = false};
    bounds.pfs[PciAddress::parse("0000:01:00.0").value()] = {.managed = true,
                                                             .num_vfs_max = 8,
                                                             .spoofchk_off = false,
                                                             .drivers = {{"vfio-pci"}},
                                                             .firmware = false};
    EXPECT_EQ(config->rules.bounds, bounds);
    for (auto const* const wrong :
         {"[bounds.pfs.enp1s0]\ntrust = true\n", "[bounds.pfs]\ndefault = 1\n",
          "[bounds.pfs.default]\nvlans = [100]\n", "[bounds.pfs.default]\nvlans = ['9-8']\n",
          "[bounds.pfs.default]\ntrust = 'no'\n", "[bounds.pfs.default]\nnum_vfs = 3\n",
          "[bounds.pfs.default]\nnum_vfs_max = -1\n", "[bounds]\naddresses = ['10.0.0']\n"}) {
        write("vfmgr.toml", wrong);
        EXPECT_FALSE(load()) << wrong;
    }
}

TEST_F(ConfigTest, TrustedNetdevsAreAListOfNames) {
    for (auto const* wrong : {"'bond0'", "[1]", "['bond0', '']", "['a b']", "[['bond0']]"}) {
        write("vfmgr.toml", std::string("[rdma_links]\ntrusted_netdevs = ") + wrong + "\n");
        EXPECT_EQ(refused().detail,
                  path("vfmgr.toml") +
                      ":2: rdma_links.trusted_netdevs must be a list of netdevs such as "
                      "[\"bond0\"]");
    }
    write("vfmgr.toml", "[rdma_links]\ntrusted_netdevs = ['bond0', 'eno2']\n");
    write("conf.d/a.toml", "[rdma_links]\ntrusted_netdevs = ['eno3']\n");
    EXPECT_THAT(load()->rules.trusted_netdevs, ElementsAre("eno3")) << "the later list, whole";
}

TEST_F(ConfigTest, ExternalHoldersAreNamedByRootAlone) {
    EXPECT_EQ(load()->rules.bounds.external_holders, HolderBounds{});
    write("vfmgr.toml",
          "[bounds.external_holders]\nallowed = true\nuids = ['64055', '100000-165535']\n");
    EXPECT_EQ(load()->rules.bounds.external_holders,
              (HolderBounds{true, {{64055, 64055}, {100000, 165535}}}));
    for (auto const* const wrong : {"uids = ['0']", "uids = [64055]", "uids = '1'", "gids = []",
                                    "uids = ['9-8']", "allowed = 1"}) {
        write("vfmgr.toml", std::string("[bounds.external_holders]\n") + wrong + "\n");
        EXPECT_THAT(refused().detail, HasSubstr("bounds.external_holders.")) << wrong;
    }
}

// The broker must start when only vfmgrd's part is wrong, and must not when its own is.
TEST_F(ConfigTest, TheBrokersRulesAreReadAlone) {
    auto const rules = [this] { return load_host_rules({path("vfmgr.toml"), path("conf.d")}); };
    EXPECT_EQ(rules().value(), HostRules{});
    write("vfmgr.toml", "stat_dir = 7\nlibvirt_uri = 'test:///'\n[limits]\nnone = 1\n");
    write("conf.d/a.toml", "[bounds.pfs.default]\ntrust = false\n");
    ASSERT_TRUE(rules()) << rules().error().detail;
    EXPECT_EQ(rules()->libvirt_uri, "test:///");
    EXPECT_EQ(rules()->bounds.default_pf.trust, false);
    EXPECT_FALSE(load());
    for (auto const* const wrong :
         {"[bounds.pfs.default]\ntrusted = false\n", "[bounds]\npf = 1\n", "libvirt_uri = 1\n",
          "bounds = 1\n", "[rdma_links]\ntrusted_netdevs = 'lo'\n", "[bounds\n"}) {
        write("conf.d/a.toml", wrong);
        ASSERT_FALSE(rules()) << wrong;
        EXPECT_THAT(rules().error().detail, HasSubstr("conf.d/a.toml:")) << wrong;
    }
}

TEST_F(ConfigTest, AnUnknownKeyNamesFileAndLine) {
    write("vfmgr.toml", "# one\nstate_dir = '/a'\n\n[listen.unix]\npth = '/x'\n");
    auto const error = refused();
    EXPECT_EQ(error.problem, Problem::invalid_request);
    EXPECT_EQ(error.detail, path("vfmgr.toml") + ":5: listen.unix.pth is not known");
    EXPECT_THAT(error.violations,
                ElementsAre(Violation{path("vfmgr.toml") + ":5", "listen.unix.pth is not known"}));
}

TEST_F(ConfigTest, AnUnknownTableToo) {
    write("conf.d/a.toml", "\n[listen.http]\nport = 80\n");
    EXPECT_EQ(refused().detail, path("conf.d/a.toml") + ":2: listen.http is not known");
}

TEST_F(ConfigTest, EveryFaultIsReported) {
    write("vfmgr.toml",
          "state_dir = 'relative'\nlibvirt_uri = 7\n[listen.tls]\nenabled = 'yes'\n"
          "address = 'localhost'\nport = 65536\n");
    write("conf.d/a.toml",
          "[guest_plane]\nvsock_port = 0\n[roles.groups]\nops = 'root'\n[roles.uids]\n"
          "bob = 'admin'\n-1 = 'admin'\n4294967296 = 'admin'\n[limits]\nread_seconds_max = 1.5\n"
          "[listen]\nunix = 3\n");
    auto const error = refused();
    EXPECT_EQ(error.detail,
              path("vfmgr.toml") + ":1: state_dir must be a path that begins with / (and 11 more)");
    std::map<std::string, std::string> found;
    for (auto const& violation : error.violations)
        found[std::filesystem::path(violation.pointer).filename()] += violation.detail + ";";
    EXPECT_EQ(found,
              (std::map<std::string, std::string>{
                  {"vfmgr.toml:1", "state_dir must be a path that begins with /;"},
                  {"vfmgr.toml:2", "libvirt_uri must be a string;"},
                  {"vfmgr.toml:4", "listen.tls.enabled must be true or false;"},
                  {"vfmgr.toml:5", "listen.tls.address must be an IP address such as \"0.0.0.0\";"},
                  {"vfmgr.toml:6", "listen.tls.port must be a whole number from 1 to 65535;"},
                  {"a.toml:2",
                   "guest_plane.vsock_port is not read any more: set ListenStream= of "
                   "vfmgr-guestd.socket (vfmgr-guestd(8));"},
                  {"a.toml:4", "roles.groups.ops must be one of viewer, operator, admin, none;"},
                  {"a.toml:6", "roles.uids.bob must be named by a uid;"},
                  {"a.toml:7", "roles.uids.-1 must be named by a uid;"},
                  {"a.toml:8", "roles.uids.4294967296 must be named by a uid;"},
                  {"a.toml:10", "limits.read_seconds_max must be a whole number from 1 to 3600;"},
                  {"a.toml:12", "listen.unix must be a table;"}}));
}

TEST_F(ConfigTest, ASyntaxErrorNamesFileAndLine) {
    write("vfmgr.toml", "state_dir = '/a'\nlibvirt_uri = \n");
    auto const error = refused();
    EXPECT_THAT(error.detail, HasSubstr(path("vfmgr.toml") + ":2: "));
}

TEST_F(ConfigTest, CertificateAndKeyBelongTogether) {
    write("vfmgr.toml", "[listen.tls]\nkey_file = '/etc/k.pem'\n");
    EXPECT_THAT(refused().detail, HasSubstr("must be given together"));
}

TEST_F(ConfigTest, ClientsNeedTheCaThatSignsThem) {
    write("vfmgr.toml", "[tls.clients]\na = 'viewer'\n");
    EXPECT_EQ(refused().detail, path("vfmgr.toml") + ": tls.clients needs tls.client_ca_file");
    write("vfmgr.toml", "[tls]\nclient_crl_file = '/etc/crl.pem'\n");
    EXPECT_EQ(refused().detail,
              path("vfmgr.toml") + ": tls.client_crl_file needs tls.client_ca_file");
    write("vfmgr.toml", "[tls]\nclient_ca_file = '/etc/ca.pem'\n");
    EXPECT_TRUE(load());
    write("conf.d/a.toml", "[tls.clients]\n'a b' = 'viewer'\n'c' = 'root'\n");
    EXPECT_THAT(
        refused().violations,
        ElementsAre(Violation{path("conf.d/a.toml") + ":2",
                              "tls.clients.a b must be named by 1 to 255 visible ASCII "
                              "characters"},
                    Violation{path("conf.d/a.toml") + ":3",
                              "tls.clients.c must be one of viewer, operator, admin, none"}));
}

TEST_F(ConfigTest, AClientMayBeOfATenant) {
    write("vfmgr.toml",
          "[tls]\nclient_ca_file = '/etc/ca.pem'\n[tls.clients]\n"
          "a = {role = 'operator', tenant = 'blue'}\n");
    EXPECT_THAT(load()->roles.clients, ElementsAre(Pair("a", ClientRole(Role::operator_, "blue"))));
    write("conf.d/a.toml",
          "[tls.clients]\nb = {role = 'admin', tenant = 'blue'}\nc = {role = 'viewer'}\n"
          "d = {role = 'viewer', tenant = 'Blue'}\ne = {role = 'x', tenant = 'blue', a = 1}\n");
    std::string const form =
        "must be a role, or of the form {role = \"operator\", tenant = \"blue\"}";
    auto const at = path("conf.d/a.toml");
    EXPECT_THAT(
        refused().violations,
        ElementsAre(
            Violation{at + ":2",
                      "tls.clients.b can't be an admin of a tenant: an admin has no limits"},
            Violation{at + ":3", "tls.clients.c " + form},
            Violation{at + ":4",
                      "tls.clients.d has a tenant whose name must be 1 to 16 of a-z and 0-9"},
            Violation{at + ":5", "tls.clients.e " + form}));
}

TEST_F(ConfigTest, AFileThatCannotBeReadIsAnError) {
    std::filesystem::create_directory(folder_ / "conf.d" / "x.toml");
    EXPECT_THAT(refused().detail, HasSubstr(path("conf.d/x.toml") + ": can't be read"));
    std::filesystem::remove(folder_ / "conf.d" / "x.toml");
    write("conf.d/big.toml", std::string(1024 * 1024 + 1, '#'));
    EXPECT_THAT(refused().detail, HasSubstr("big.toml: is longer than 1048576 bytes"));
}

}  // namespace
}  // namespace vfmgr
