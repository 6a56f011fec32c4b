// SPDX-License-Identifier: Apache-2.0
#include "service/server_certificate.hpp"

#include <gmock/gmock.h>

#include <filesystem>

#include "tests/unit/authority.hpp"

namespace vfmgr {
namespace {

using std::chrono::hours;
using testing::HasSubstr;
using testing::IsSupersetOf;

constexpr Time today = Time{} + hours(24 * 365 * 50);

TEST(WhyRenew, ANameIsMissingOrItsEndIsNear) {
    http::CertificateFacts facts;
    facts.fingerprint = "ab";
    facts.names = {"a", "10.0.0.1"};
    facts.expires_at = today + hours(24 * 31);
    facts.made_here = true;
    EXPECT_EQ(why_renew(facts, {"a"}, today), std::nullopt) << "a name too many does no harm";
    EXPECT_EQ(why_renew(facts, {"a", "10.0.0.2"}, today), "it lacks 10.0.0.2");
    facts.expires_at = today + hours(24 * 30);
    EXPECT_EQ(why_renew(facts, {"a"}, today), "it expires at " + to_rfc3339(facts.expires_at));
    facts.made_here = false;
    EXPECT_EQ(why_renew(facts, {"b"}, today), std::nullopt) << "it is somebody else's";
}

struct ServerCertificate : testing::Test {
    test::TemporaryFolder folder;
    Config config;
    std::string certificate = folder.file("tls.crt");

    void SetUp() override { config.state_dir = folder.path(); }
    http::TlsListen files(std::vector<std::string> const& names,
                          DaemonIs daemon_is = DaemonIs::starting,
                          Time at = std::chrono::system_clock::now()) {
        auto made = tls_files(config, names, daemon_is, at);
        EXPECT_TRUE(made) << made.error().detail;
        return made.value();
    }
    [[nodiscard]] http::CertificateFacts facts() const {
        return http::read_certificate(certificate).value();
    }
};

TEST_F(ServerCertificate, IsMadeOnceAndAgainForANewName) {
    EXPECT_EQ(files({"a.example", "10.0.0.1"}).certificate_file, certificate);
    auto const first = facts();
    EXPECT_TRUE(first.made_here);
    EXPECT_THAT(first.names, IsSupersetOf({"a.example", "10.0.0.1"}));
    testing::internal::CaptureStderr();
    files({"a.example"});
    EXPECT_EQ(facts().fingerprint, first.fingerprint);
    files({"fd00::1"}, DaemonIs::running);
    EXPECT_EQ(facts().fingerprint, first.fingerprint) << "only at a start";
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
    testing::internal::CaptureStderr();
    auto const listen = files({"a.example", "fd00::1"});
    auto const second = facts();
    EXPECT_NE(second.fingerprint, first.fingerprint);
    EXPECT_THAT(second.names, IsSupersetOf({"a.example", "fd00::1"}));
    auto const line = testing::internal::GetCapturedStderr();
    EXPECT_THAT(line, HasSubstr("<5>"));
    EXPECT_THAT(line, HasSubstr("reason=\"it lacks fd00::1\""));
    EXPECT_THAT(line, HasSubstr("fingerprint_before=" + first.fingerprint +
                                " fingerprint=" + second.fingerprint));
    EXPECT_TRUE(http::check_certificate(listen)) << "with the key that it had";
}

TEST_F(ServerCertificate, IsRenewedBeforeItEnds) {
    files({"a.example"});
    auto const first = facts();
    files({"a.example"}, DaemonIs::running, first.expires_at - hours(24 * 31));
    EXPECT_EQ(facts().fingerprint, first.fingerprint);
    files({"a.example"}, DaemonIs::running, first.expires_at - hours(24 * 30));
    EXPECT_NE(facts().fingerprint, first.fingerprint);
}

// An operator's certificate has the names that its clients verify.
TEST_F(ServerCertificate, NamesAreThoseThatRequestsMayBeFor) {
    auto const made = files({"A.example", "fd00::1"});
    config.tls.host_names = {"vfmgr.example"};
    auto const served = served_as(made, config.tls, {"host", "192.0.2.1", "not a name"});
    ASSERT_TRUE(served) << served.error().detail;
    EXPECT_EQ(served->fingerprint, facts().fingerprint);
    EXPECT_EQ(served->hosts,
              (std::set<std::string>{"localhost", "127.0.0.1", "::1", "a.example", "fd00::1",
                                     "vfmgr.example", "host", "192.0.2.1"}));
}

TEST_F(ServerCertificate, AnOperatorsOwnIsLeftAlone) {
    test::Authority authority;
    auto const own = authority.issue({.common_name = "host", .usage = "serverAuth"});
    std::filesystem::copy_file(own.certificate_file, certificate);
    std::filesystem::copy_file(own.key_file, folder.file("tls.key"));
    auto const before = facts();
    EXPECT_FALSE(before.made_here);
    files({"another"});
    EXPECT_EQ(facts().fingerprint, before.fingerprint);
    config.tls.certificate_file = own.certificate_file;
    config.tls.key_file = own.key_file;
    EXPECT_EQ(files({"another"}).certificate_file, own.certificate_file);
}

}  // namespace
}  // namespace vfmgr
