// SPDX-License-Identifier: Apache-2.0
// A reload takes all of a configuration or nothing, and says which.
#include "service/reload.hpp"

#include <gmock/gmock.h>

#include <fstream>

#include "tests/unit/authority.hpp"
#include "tests/unit/free_port.hpp"

namespace vfmgr {
namespace {

using testing::HasSubstr;
using testing::Not;

struct ReloadTest : testing::Test {
    test::TemporaryFolder folder;
    Config config;
    std::optional<Error> broken;
    RulesInForce rules{{}};
    FleetAccess fleet{folder.file("fleet-ca.pem")};
    http::Server server{http::Limits{}};
    EventStreams streams{{}, {server.io_post(), {}}};
    std::optional<Reload> reload;

    void SetUp() override {
        config.state_dir = folder.path();
        config.roles.groups = {{"root", Role::viewer}};
        config.tls.enabled = true;
        config.tls.port = test::free_port();
        ASSERT_TRUE(http::make_self_signed(folder.file("tls.crt"), folder.file("tls.key"), {"a"}));
        auto where = tls_listen(config.tls);
        where.certificate_file = folder.file("tls.crt");
        where.key_file = folder.file("tls.key");
        ASSERT_TRUE(server.listen(where, [](http::Request request, http::Respond respond) {
            ASSERT_TRUE(http::make_known(request, {"one"}));
            respond({.status = 200, .headers = {}, .body = "served"});
        }));
        server.start();
        rules.set(resolve_access(config).rules);
        reload.emplace(Reloaded{[this]() -> Result<Config> {
                                    if (broken) return fail(*broken);
                                    return config;
                                },
                                [] { return std::vector<std::string>{"a"}; }, rules, server,
                                streams, fleet, system_clock()},
                       Running{config, {}, fingerprint()});
    }
    [[nodiscard]] std::string fingerprint(char const* file = "tls.crt") const {
        return http::certificate_fingerprint(folder.file(file)).value();
    }
    std::string run() {
        testing::internal::CaptureStderr();
        reload->run();
        return testing::internal::GetCapturedStderr();
    }
    [[nodiscard]] bool serves(std::string const& certificate) const {
        http::TlsTarget const target{
            .host = "127.0.0.1", .port = config.tls.port, .fingerprint = certificate};
        return http::Client(target)
            .send(http::make_request("GET", "/"), std::chrono::seconds(20))
            .has_value();
    }
};

TEST_F(ReloadTest, TakesWhatItCanAndNamesTheRest) {
    config.roles.uids = {{7, Role::admin}};
    config.changes.per_second = 3;
    config.rules.libvirt_uri = "test:///default";
    auto const lines = run();
    EXPECT_THAT(lines, HasSubstr("configuration changed key=roles.uids.7 from=\"\" to=admin"));
    EXPECT_THAT(lines, HasSubstr("key=limits.changes_per_second from=20 to=3"));
    EXPECT_THAT(lines, HasSubstr("only a restart applies it key=libvirt_uri"));
    EXPECT_THAT(lines, HasSubstr("configuration reloaded"));
    EXPECT_EQ(rules.get()->roles.uids, config.roles.uids);
    EXPECT_EQ(rules.get()->changes.per_second, 3);
    auto const again = run();
    EXPECT_THAT(again, Not(HasSubstr("roles.uids.7"))) << "it is in force";
    EXPECT_THAT(again, HasSubstr("key=libvirt_uri")) << "it is still not";
}

TEST_F(ReloadTest, ServesAnotherCertificate) {
    auto const before = fingerprint();
    EXPECT_TRUE(serves(before));
    ASSERT_TRUE(http::make_self_signed(folder.file("new.crt"), folder.file("new.key"), {"a"}));
    config.tls.certificate_file = folder.file("new.crt");
    config.tls.key_file = folder.file("new.key");
    auto const after = fingerprint("new.crt");
    EXPECT_THAT(run(), HasSubstr("fingerprint_before=" + before + " fingerprint=" + after));
    EXPECT_TRUE(serves(after));
    EXPECT_FALSE(serves(before));
}

TEST_F(ReloadTest, TakesTheNamesThatRequestsMayBeFor) {
    EXPECT_FALSE(rules.get()->hosts.contains("vfmgr.example"));
    config.tls.host_names = {"vfmgr.example"};
    EXPECT_THAT(run(), HasSubstr("key=listen.tls.host_names from=[] to=[vfmgr.example]"));
    EXPECT_TRUE(rules.get()->hosts.contains("vfmgr.example"));
    EXPECT_TRUE(rules.get()->hosts.contains("a")) << "the host's own";
}

TEST_F(ReloadTest, IsAllOrNothing) {
    auto const before = config;
    auto const expect_nothing = [&](std::string const& why) {
        auto const lines = run();
        EXPECT_THAT(lines, HasSubstr("the configuration is not reloaded"));
        EXPECT_THAT(lines, HasSubstr(why));
        EXPECT_THAT(lines, Not(HasSubstr("configuration changed")));
        EXPECT_TRUE(rules.get()->roles.uids.empty());
        EXPECT_TRUE(serves(fingerprint()));
    };
    config.roles.uids = {{7, Role::admin}};
    config.tls.client_ca_file = folder.file("none.pem");
    expect_nothing("can't load the client CAs in " + folder.file("none.pem"));
    config.tls = before.tls;
    config.roles.groups["no-such-group"] = Role::admin;
    expect_nothing("this host has no group 'no-such-group'");
    broken = Error{Problem::invalid_request, "vfmgr.toml:3: x is not known", "correct it"};
    broken->violations.push_back({"vfmgr.toml:3", "x is not known"});
    expect_nothing("x is not known at=vfmgr.toml:3");
    broken.reset();
    config.roles.groups.erase("no-such-group");
    EXPECT_THAT(run(), HasSubstr("configuration reloaded"));
    EXPECT_EQ(rules.get()->roles.uids.size(), 1U);
}

TEST_F(ReloadTest, AnOperatorsCertificateThatEndsIsAnnounced) {
    auto const look = [&] {
        testing::internal::CaptureStderr();
        reload->look_after_certificate();
        return testing::internal::GetCapturedStderr();
    };
    EXPECT_EQ(look(), "");
    test::Authority authority;
    auto const own = authority.issue({.usage = "serverAuth"});
    config.tls.certificate_file = own.certificate_file;
    config.tls.key_file = own.key_file;
    run();
    EXPECT_THAT(look(), HasSubstr("the certificate of TLS expires soon"));
}

}  // namespace
}  // namespace vfmgr
