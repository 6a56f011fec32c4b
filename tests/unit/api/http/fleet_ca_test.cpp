// SPDX-License-Identifier: Apache-2.0
// A second CA whose clients a server accepts, beside those of client_ca_file: nobody of one is ever
// taken for one of the other.
#include <gmock/gmock.h>

#include <fstream>

#include "api/http/authority.hpp"
#include "tests/unit/api/http/tls_harness.hpp"
#include "tests/unit/authority.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

void say_authority(Request request, Respond respond) {
    auto const& certificate = std::get<TcpPeer>(request.peer).certificate;
    Response response;
    response.body = "none";
    if (certificate)
        response.body = (certificate->names.empty() ? "-" : certificate->names.front()) + " by " +
                        certificate->authority;
    respond(std::move(response));
}

struct TwoAuthorities : testing::Test {
    TwoAuthorities() {
        EXPECT_TRUE(
            make_self_signed(folder.file("cert.pem"), folder.file("key.pem"), {"127.0.0.1"}));
        server.on_turned_away([this](Peer const&, Error const& why) {
            last_refusal = why.detail;
            refused.add();
        });
    }
    [[nodiscard]] TlsListen where() const {
        return {.address = "127.0.0.1",
                .port = port,
                .certificate_file = folder.file("cert.pem"),
                .key_file = folder.file("key.pem"),
                .client_ca_file = admins.certificate_file(),
                .fleet_ca_file = fleet.certificate_file()};
    }
    void start(TlsListen const& trust) {
        auto const listening = server.listen(trust, say_authority);
        ASSERT_TRUE(listening) << listening.error().detail;
        server.start();
    }
    [[nodiscard]] std::string ask(test::Authority::Issued const& shown) {
        auto const before = refused.count();
        auto const answer = Client(TlsTarget{.host = "127.0.0.1",
                                             .port = port,
                                             .ca_file = folder.file("cert.pem"),
                                             .certificate_file = shown.certificate_file,
                                             .key_file = shown.key_file})
                                .send(get("/"), 20s);
        if (answer) return answer->body;
        EXPECT_TRUE(refused.reaches(before + 1)) << answer.error().detail;
        return last_refusal;
    }
    static std::string by(test::Authority const& authority) {
        return " by " + certificate_fingerprint(authority.certificate_file()).value();
    }

    Folder folder;
    test::Authority admins{"admins"};
    test::Authority fleet{"fleet"};
    std::uint16_t port = test::free_port();
    Counter refused;
    std::string last_refusal;  // written before `refused` counts
    Server server{Limits{}};
};

TEST_F(TwoAuthorities, ANameOfBothIsToldApartByItsAuthority) {
    start(where());
    EXPECT_EQ(ask(admins.issue({.common_name = "alice"})), "alice" + by(admins));
    EXPECT_EQ(ask(fleet.issue({.common_name = "alice"})), "alice" + by(fleet));
    EXPECT_NE(by(admins), by(fleet));
    test::Authority other("other");
    EXPECT_THAT(ask(other.issue({})), HasSubstr("unable to get local issuer certificate"));
    EXPECT_THAT(ask(fleet.issue({.lasts = -1h})), HasSubstr("certificate has expired"));
    EXPECT_THAT(ask(fleet.issue({.usage = "serverAuth"})),
                HasSubstr("unsuitable certificate purpose"));
}

// Both have the same subject, and so the same issuer's name in their certificates.
TEST_F(TwoAuthorities, CasOfOneNameAreToldApartByTheirKeys) {
    test::Authority twin("admins");
    auto trust = where();
    trust.fleet_ca_file = twin.certificate_file();
    trust.client_crl_file = admins.revoke({});
    start(trust);
    EXPECT_EQ(ask(admins.issue({.common_name = "alice"})), "alice" + by(admins));
    EXPECT_EQ(ask(twin.issue({.common_name = "alice"})), "alice" + by(twin));
}

TEST_F(TwoAuthorities, RevocationListsCountForTheirOwnFileOnly) {
    auto const good = admins.issue({.common_name = "good"});
    auto const bad = admins.issue({.common_name = "bad"});
    auto replica = fleet.issue({.common_name = "replica"});
    while (replica.serial <= bad.serial) replica = fleet.issue({.common_name = "replica"});
    auto trust = where();
    trust.client_crl_file = admins.revoke({bad.serial, replica.serial});
    start(trust);
    EXPECT_EQ(ask(good), "good" + by(admins));
    EXPECT_THAT(ask(bad), HasSubstr("certificate revoked"));
    EXPECT_EQ(ask(replica), "replica" + by(fleet)) << "no list of its CA is asked for";
    trust.client_crl_file = admins.revoke({}, -1h);
    ASSERT_TRUE(server.renew(trust));
    EXPECT_THAT(ask(good), HasSubstr("CRL has expired"));
    EXPECT_EQ(ask(replica), "replica" + by(fleet));
}

// An admin who names the fleet's CA for clients, too, wants its revocation list.
TEST_F(TwoAuthorities, ACaInBothFilesCountsAsOneOfTheFirst) {
    auto const bad = admins.issue({.common_name = "bad"});
    auto trust = where();
    trust.fleet_ca_file = admins.certificate_file();
    trust.client_crl_file = admins.revoke({bad.serial});
    start(trust);
    EXPECT_THAT(ask(bad), HasSubstr("certificate revoked"));
    EXPECT_EQ(ask(admins.issue({.common_name = "good"})), "good" + by(admins));
}

// What the fleet's CA has signed is the fleet's, though a CA of the first file has signed that CA.
TEST_F(TwoAuthorities, TheFleetsCaComesFirstEvenBelowAnother) {
    auto const below =
        admins.issue({.common_name = "below", .usage = "", .constraints = "critical,CA:TRUE"});
    auto trust = where();
    trust.fleet_ca_file = below.certificate_file;
    start(trust);
    IssuedFiles const files{folder.file("leaf.pem"), folder.file("leaf.key")};
    auto const made = issue({below.certificate_file, below.key_file},
                            {.common_name = "alice", .for_clients = true}, files);
    ASSERT_TRUE(made) << made.error().detail;
    EXPECT_EQ(ask({files.certificate_file, files.key_file}),
              "alice by " + certificate_fingerprint(below.certificate_file).value());
}

TEST_F(TwoAuthorities, TheFleetAloneIsPossible) {
    auto trust = where();
    trust.client_ca_file.clear();
    start(trust);
    EXPECT_EQ(ask(fleet.issue({.common_name = "alice"})), "alice" + by(fleet));
    EXPECT_THAT(ask(admins.issue({})), HasSubstr("unable to get local issuer certificate"));
}

TEST_F(TwoAuthorities, ItComesAndGoesByRenewal) {
    auto trust = where();
    trust.fleet_ca_file.clear();
    start(trust);
    auto const replica = fleet.issue({.common_name = "replica"});
    auto const admin = admins.issue({.common_name = "admin"});
    EXPECT_THAT(ask(replica), HasSubstr("unable to get local issuer certificate"));
    ASSERT_TRUE(server.renew(where()));
    EXPECT_EQ(ask(replica), "replica" + by(fleet));
    RawTls open_replica(port, replica.certificate_file, replica.key_file);
    RawTls open_admin(port, admin.certificate_file, admin.key_file);
    for (auto* one : {&open_replica, &open_admin}) one->send("GET / HTTP/1.1\r\nHost: a\r\n");
    EXPECT_EQ(ask(replica), "replica" + by(fleet)) << "their handshakes are over then";
    ASSERT_TRUE(server.renew(where())) << "nothing has changed";
    trust.client_crl_file = admins.revoke({});
    ASSERT_TRUE(server.renew(trust));
    EXPECT_TRUE(open_replica.ended());
    open_admin.send("Connection: close\r\n\r\n");
    EXPECT_THAT(open_admin.everything(), HasSubstr("admin" + by(admins)));
    EXPECT_THAT(ask(replica), HasSubstr("unable to get local issuer certificate"));
}

// It was accepted as one of the fleet, and would now be one of the others.
TEST_F(TwoAuthorities, AConnectionEndsWhenAnotherCaAcceptsItsCertificate) {
    auto const below =
        admins.issue({.common_name = "below", .usage = "", .constraints = "critical,CA:TRUE"});
    auto trust = where();
    trust.fleet_ca_file = below.certificate_file;
    start(trust);
    IssuedFiles const files{folder.file("leaf.pem"), folder.file("leaf.key")};
    ASSERT_TRUE(issue({below.certificate_file, below.key_file},
                      {.common_name = "alice", .for_clients = true}, files));
    RawTls open(port, files.certificate_file, files.key_file);
    open.send("GET / HTTP/1.1\r\nHost: a\r\n");
    EXPECT_EQ(ask({files.certificate_file, files.key_file}),
              "alice by " + certificate_fingerprint(below.certificate_file).value());
    trust.fleet_ca_file.clear();
    ASSERT_TRUE(server.renew(trust));
    EXPECT_TRUE(open.ended());
    EXPECT_EQ(ask({files.certificate_file, files.key_file}), "alice" + by(admins));
}

TEST_F(TwoAuthorities, AFileThatCantBeUsedIsNamed) {
    auto trust = where();
    auto const refusal = [&] {
        auto const usable = check_certificate(trust);
        return usable ? std::string() : usable.error().detail;
    };
    EXPECT_EQ(refusal(), "");
    trust.fleet_ca_file = folder.file("none.pem");
    EXPECT_EQ(refusal(), "can't use the fleet's CA in " + trust.fleet_ca_file + ": can't open " +
                             trust.fleet_ca_file);
    trust.fleet_ca_file = fleet.issue({}).certificate_file;
    EXPECT_EQ(refusal(),
              "can't use the fleet's CA in " + trust.fleet_ca_file + ": it is no CA's certificate");
}

}  // namespace
}  // namespace vfmgr::http
