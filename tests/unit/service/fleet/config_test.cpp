// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/repository.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr auto least = R"(name = "fleet1"
url = "https://fleet1.example:8480"
etcd.endpoints = ["https://10.0.0.1:2379"]
[listen.tls]
certificate_file = "/etc/vfmgr/fleet/replica.pem"
key_file = "/etc/vfmgr/fleet/replica.key"
ca_file = "/etc/vfmgr/fleet/ca.pem"
)";

class FleetConfigTest : public ::testing::Test {
  protected:
    void SetUp() override { std::filesystem::create_directory(folder_ / "fleetd.conf.d"); }
    void write(std::string const& name, std::string const& content) {
        std::ofstream(folder_ / name) << content;
    }
    std::string path(std::string const& name) const { return (folder_ / name).string(); }
    Result<Config> load() const {
        return load_config({path("fleetd.toml"), path("fleetd.conf.d"), true});
    }
    Config loaded() const {
        auto const config = load();
        EXPECT_TRUE(config) << config.error().detail;
        return config.value_or(Config());
    }
    std::string refusal() const {
        auto const config = load();
        return config ? "accepted" : config.error().detail;
    }

    test::TemporaryFolder temporary_;
    std::filesystem::path const folder_ = temporary_.path();
};

TEST_F(FleetConfigTest, WhatHasADefaultMayBeAbsent) {
    write("fleetd.toml", least);
    auto const config = loaded();
    EXPECT_EQ(config.name, "fleet1");
    EXPECT_EQ(config.unix_socket.path, "/run/vfmgr-fleetd/fleetd.sock");
    EXPECT_EQ(config.unix_socket.group, "vfmgr");
    EXPECT_EQ(config.tls.address, "0.0.0.0");
    EXPECT_EQ(config.tls.port, 8480);
    EXPECT_TRUE(config.tls.enabled);
    EXPECT_EQ(config.etcd.prefix, "/vfmgr/");
    EXPECT_THAT(config.roles.groups, ElementsAre(Pair("vfmgr", Role::operator_)));
    EXPECT_EQ(config.changes, changes_default);
    EXPECT_EQ(config.workers, WorkerLimits());
}

TEST_F(FleetConfigTest, TheReplicaShowsEtcdItsOwnCertificateUnlessAnotherIsNamed) {
    write("fleetd.toml", least);
    auto const own = loaded().etcd;
    EXPECT_EQ(own.ca_file, "/etc/vfmgr/fleet/ca.pem");
    EXPECT_EQ(own.certificate_file, "/etc/vfmgr/fleet/replica.pem");
    EXPECT_EQ(own.key_file, "/etc/vfmgr/fleet/replica.key");
    write("fleetd.conf.d/etcd.toml",
          "[etcd]\nca_file = \"/e/ca\"\ncertificate_file = \"/e/crt\"\nkey_file = \"/e/key\"\n");
    auto const other = loaded().etcd;
    EXPECT_EQ(other.ca_file, "/e/ca");
    EXPECT_EQ(other.certificate_file, "/e/crt");
    EXPECT_EQ(other.key_file, "/e/key");
    EXPECT_THAT(other.endpoints, ElementsAre("https://10.0.0.1:2379")) << "key by key";
}

TEST_F(FleetConfigTest, ClientsOfTheFleetsCaAreAskedForACertificateUnlessAnotherCaIsNamed) {
    write("fleetd.toml", least);
    EXPECT_EQ(tls_listen(loaded()).client_ca_file, "/etc/vfmgr/fleet/ca.pem");
    EXPECT_EQ(tls_listen(loaded()).port, 8480);
    write("fleetd.conf.d/a.toml", "tls.client_ca_file = \"/people.pem\"\n");
    EXPECT_EQ(tls_listen(loaded()).client_ca_file, "/people.pem");
    EXPECT_EQ(tls_listen(loaded()).fleet_ca_file, "/etc/vfmgr/fleet/ca.pem") << "of replicas";
}

TEST_F(FleetConfigTest, EveryKeyThatIsMissingIsNamed) {
    write("fleetd.toml", "name = \"fleet1\"\n");
    auto const config = load();
    ASSERT_FALSE(config);
    std::vector<std::string> missing;
    for (auto const& [pointer, detail] : config.error().violations) {
        EXPECT_EQ(pointer, path("fleetd.toml"));
        missing.push_back(detail.substr(0, detail.find(' ')));
    }
    EXPECT_THAT(missing, ElementsAre("url", "etcd.endpoints", "listen.tls.certificate_file",
                                     "listen.tls.key_file", "listen.tls.ca_file"));
    EXPECT_THAT(config.error().remedy, HasSubstr("vfmgr-fleetd(8)"));
}

TEST_F(FleetConfigTest, AFaultIsNamedByItsLine) {
    write("fleetd.toml", std::string(least) + "\n[roles.uids]\n1000 = \"king\"\n");
    EXPECT_THAT(refusal(), HasSubstr(path("fleetd.toml") + ":10: roles.uids.1000 must be one of"));
    write("fleetd.toml", std::string(least) + "colour = 1\n");
    EXPECT_THAT(refusal(), HasSubstr(path("fleetd.toml") + ":8: listen.tls.colour is not known"));
    // A host's keys are not the fleet's.
    write("fleetd.toml", std::string("state_dir = \"/x\"\n") + least);
    EXPECT_THAT(refusal(), HasSubstr(path("fleetd.toml") + ":1: state_dir is not known"));
    write("fleetd.toml", std::string(least) + "enabled = true\n");
    EXPECT_THAT(refusal(), HasSubstr("listen.tls.enabled is not known")) << "it is always on";
}

TEST_F(FleetConfigTest, EtcdIsReachedWithTlsExceptOnThisHost) {
    auto const with = [&](std::string const& endpoint) {
        write("fleetd.toml", least);
        write("fleetd.conf.d/e.toml", "etcd.endpoints = [\"" + endpoint + "\"]\n");
        return refusal();
    };
    for (auto const* good : {"https://etcd1.example:2379", "https://[2001:db8::1]:2379",
                             "http://127.0.0.1:2379", "http://[::1]:2379", "http://localhost:1"})
        EXPECT_EQ(with(good), "accepted") << good;
    for (auto const* bad : {"http://10.0.0.1:2379", "10.0.0.1:2379", "https://", "https://a:b",
                            "https://etcd1.example:2379/v3", "http://127.0.0.1.example:2379"})
        EXPECT_THAT(with(bad), HasSubstr("etcd.endpoints must be a list of URLs")) << bad;
}

TEST_F(FleetConfigTest, NameUrlAndPrefixHaveTheirForms) {
    auto const with = [&](std::string const& line) {
        write("fleetd.toml", least);
        write("fleetd.conf.d/x.toml", line + "\n");
        return refusal();
    };
    EXPECT_EQ(with("name = \"a-b.c_1\""), "accepted");
    EXPECT_THAT(with("name = \"a/b\""), HasSubstr("name must be 1 to 63 letters"));
    EXPECT_THAT(with("name = \"" + std::string(64, 'a') + "\""), HasSubstr("name must be"));
    EXPECT_EQ(with("url = \"https://10.0.0.1:8480\""), "accepted");
    EXPECT_THAT(with("url = \"http://fleet1:8480\""), HasSubstr("url must be of the form"));
    EXPECT_THAT(with("url = \"https://fleet1:8480/\""), HasSubstr("url must be of the form"));
    EXPECT_EQ(with("etcd.prefix = \"/a/b/\""), "accepted");
    EXPECT_THAT(with("etcd.prefix = \"/vfmgr\""), HasSubstr("etcd.prefix must begin and end"));
    EXPECT_THAT(with("etcd.key_file = \"/k\""), HasSubstr("must be given together"));
    EXPECT_THAT(with("tls.client_crl_file = \"/k\""), HasSubstr("needs tls.client_ca_file"));
}

TEST_F(FleetConfigTest, WhatOnlyAStartAppliesKeepsItsRunningValue) {
    write("fleetd.toml", least);
    auto const running = loaded();
    write("fleetd.conf.d/x.toml",
          "name = \"other\"\n[limits]\nworker_threads = 3\nchanges_burst = 7\n");
    auto const wanted = loaded();
    auto const taken = applicable(running, wanted);
    EXPECT_EQ(taken.name, "fleet1");
    EXPECT_EQ(taken.workers, running.workers);
    EXPECT_EQ(taken.changes.burst, 7);
    auto const keys = [](auto const& changes) {
        std::vector<std::string> names;
        for (auto const& change : changes) names.push_back(change.key);
        return names;
    };
    EXPECT_THAT(keys(changes_between(values_of(running), values_of(taken))),
                ElementsAre("limits.changes_burst"));
    EXPECT_THAT(keys(changes_between(values_of(taken), values_of(wanted))),
                ElementsAre("limits.worker_threads", "name"));
}

TEST_F(FleetConfigTest, WhatIsNamedIsChecked) {
    write("fleetd.toml", least);
    write("fleetd.conf.d/x.toml", "listen.unix.group = \"nobody-has-this-group\"\n");
    auto const checked = check_named(loaded());
    ASSERT_FALSE(checked);
    std::vector<std::string> settings;
    for (auto const& violation : checked.error().violations) settings.push_back(violation.pointer);
    EXPECT_THAT(settings, testing::IsSupersetOf({"listen.unix.group", "listen.tls", "etcd"}));
}

// The file that the package installs says the defaults, and only lacks what has none.
TEST_F(FleetConfigTest, TheInstalledFileIsReadable) {
    auto const file = (test::repository() / "deploy/config/fleetd.toml").string();
    auto const config = load_config({file, path("none"), true});
    ASSERT_FALSE(config);
    for (auto const& violation : config.error().violations)
        EXPECT_THAT(violation.detail, HasSubstr("is missing"));
}

}  // namespace
}  // namespace vfmgr::fleet
