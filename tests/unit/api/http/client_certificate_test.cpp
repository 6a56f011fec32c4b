// SPDX-License-Identifier: Apache-2.0
// Which client certificates a server accepts, and what its handlers learn of them.
#include <gmock/gmock.h>

#include <fstream>

#include "api/http/tls.hpp"
#include "tests/unit/api/http/tls_harness.hpp"
#include "tests/unit/authority.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;
using test::Authority;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Answers with the names of the client's certificate: "a b", or "none" without one.
void say_names(Request request, Respond respond) {
    auto const& certificate = std::get<TcpPeer>(request.peer).certificate;
    Response response;
    response.body = certificate ? "" : "none ";
    if (certificate)
        for (auto const& name : certificate->names) response.body += name + " ";
    respond(std::move(response));
}

struct ClientCertificates : testing::Test {
    void start(TlsListen trust) {
        trust.address = "127.0.0.1";
        trust.port = port;
        trust.certificate_file = folder.file("cert.pem");
        trust.key_file = folder.file("key.pem");
        ASSERT_TRUE(make_self_signed(trust.certificate_file, trust.key_file, {"127.0.0.1"}));
        server.on_turned_away([this](Peer const& peer, Error const& why) {
            refusals.push_back(std::get<TcpPeer>(peer).address + " " +
                               std::string(code(why.problem)) + " " + why.detail);
            refused.add();
        });
        auto const listening = server.listen(trust, say_names);
        ASSERT_TRUE(listening) << listening.error().detail;
        server.start();
    }
    void start() { start({.client_ca_file = authority.certificate_file()}); }
    [[nodiscard]] Result<Response> ask(std::string const& certificate = {},
                                       std::string const& key = {}) const {
        return Client(TlsTarget{.host = "127.0.0.1",
                                .port = port,
                                .ca_file = folder.file("cert.pem"),
                                .certificate_file = certificate,
                                .key_file = key})
            .send(get("/"), 20s);
    }
    [[nodiscard]] Result<Response> ask(Authority::Issued const& issued) const {
        return ask(issued.certificate_file, issued.key_file);
    }
    void expect_refusal(Authority::Issued const& issued, std::string const& why) {
        auto const before = refused.count();
        auto const answer = ask(issued);
        ASSERT_FALSE(answer) << answer->body;
        EXPECT_EQ(answer.error().problem, Problem::unauthorized) << answer.error().detail;
        EXPECT_THAT(answer.error().detail, HasSubstr("does not accept this client certificate"));
        ASSERT_TRUE(refused.reaches(before + 1));
        EXPECT_EQ(refusals.back(), "127.0.0.1 unauthorized its certificate is refused: " + why);
    }

    Folder folder;
    Authority authority;
    std::uint16_t port = test::free_port();
    Counter refused;
    std::vector<std::string> refusals;  // written before `refused` counts
    Server server{Limits{}};
};

TEST_F(ClientCertificates, OneThatVerifiesReachesTheHandlerAndNoneIsFineToo) {
    start();
    auto const named = authority.issue({.alternatives = "URI:spiffe://fleet/a,DNS:a.example"});
    EXPECT_EQ(ask(named).value().body, "spiffe://fleet/a ");
    EXPECT_EQ(ask().value().body, "none ");
    EXPECT_THAT(refusals, IsEmpty());
}

TEST_F(ClientCertificates, AServerWithoutACaAsksForNone) {
    start({});
    EXPECT_EQ(ask(authority.issue({})).value().body, "none ");
}

TEST_F(ClientCertificates, OneOfAnotherCaIsRefused) {
    start();
    Authority other("other");
    expect_refusal(other.issue({}), "unable to get local issuer certificate");
}

TEST_F(ClientCertificates, OneThatIsNotForClientsIsRefused) {
    start();
    for (auto const* usage : {"serverAuth", "", "anyExtendedKeyUsage"}) {
        SCOPED_TRACE(usage);
        expect_refusal(authority.issue({.usage = usage}), "unsuitable certificate purpose");
    }
    EXPECT_TRUE(ask(authority.issue({.usage = "serverAuth,clientAuth"})));
}

TEST_F(ClientCertificates, OneThatExpiredIsRefused) {
    start();
    expect_refusal(authority.issue({.lasts = -1h}), "certificate has expired");
}

TEST_F(ClientCertificates, OneThatIsRevokedIsRefused) {
    auto const good = authority.issue({.common_name = "good"});
    auto const bad = authority.issue({.common_name = "bad"});
    start({.client_ca_file = authority.certificate_file(),
           .client_crl_file = authority.revoke({bad.serial})});
    EXPECT_EQ(ask(good).value().body, "good ");
    expect_refusal(bad, "certificate revoked");
}

// A list that nobody renews could hide a revocation.
TEST_F(ClientCertificates, NoneIsAcceptedByAListThatIsOutOfDate) {
    start({.client_ca_file = authority.certificate_file(),
           .client_crl_file = authority.revoke({}, -1h)});
    expect_refusal(authority.issue({}), "CRL has expired");
}

TEST_F(ClientCertificates, WhatIsRenewedCountsForOpenConnectionsToo) {
    auto const good = authority.issue({.common_name = "good"});
    auto const bad = authority.issue({.common_name = "bad"});
    start();
    RawTls accepted(port, good.certificate_file, good.key_file);
    RawTls revoked(port, bad.certificate_file, bad.key_file);
    RawTls without(port);
    for (auto* one : {&accepted, &revoked, &without}) one->send("GET / HTTP/1.1\r\nHost: a\r\n");
    TlsListen trust{.certificate_file = folder.file("cert.pem"),
                    .key_file = folder.file("key.pem"),
                    .client_ca_file = folder.file("no.pem")};
    auto const failed = server.renew(trust);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().detail, "can't load the client CAs in " + folder.file("no.pem"));
    EXPECT_TRUE(ask(bad)) << "nothing has changed";
    trust.client_ca_file = authority.certificate_file();
    trust.client_crl_file = authority.revoke({bad.serial});
    ASSERT_TRUE(server.renew(trust));
    expect_refusal(bad, "certificate revoked");
    EXPECT_TRUE(revoked.ended());
    for (auto* one : {&accepted, &without}) one->send("Connection: close\r\n\r\n");
    EXPECT_NE(accepted.everything().find("good "), std::string::npos);
    EXPECT_NE(without.everything().find("none "), std::string::npos);
}

TEST_F(ClientCertificates, ARenewedCertificateIsShown) {
    start();
    auto const [certificate, key] = std::pair(folder.file("new.pem"), folder.file("new.key"));
    ASSERT_TRUE(make_self_signed(certificate, key, {"127.0.0.1"}));
    EXPECT_TRUE(ask());
    ASSERT_TRUE(server.renew({.certificate_file = certificate, .key_file = key}));
    EXPECT_FALSE(ask()) << "its CA file has the former certificate";
    std::filesystem::copy_file(certificate, folder.file("cert.pem"),
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_EQ(ask(authority.issue({})).value().body, "none ") << "and no client CA any more";
}

TEST_F(ClientCertificates, FilesThatCantBeUsedAreNamed) {
    auto const nothing = folder.file("nothing.pem");
    std::ofstream(nothing) << "";
    auto const refuse = [&](TlsListen const& trust) {
        auto const usable = check_certificate(trust);
        EXPECT_FALSE(usable);
        return usable ? "" : usable.error().detail;
    };
    EXPECT_EQ(refuse({.client_ca_file = nothing}), "can't load the client CAs in " + nothing);
    EXPECT_EQ(refuse({.client_ca_file = authority.certificate_file(), .client_crl_file = nothing}),
              "can't load the revocation lists in " + nothing);
    EXPECT_TRUE(check_certificate({.client_ca_file = authority.certificate_file()}));
    start();
    auto const half = ask(authority.certificate_file());
    ASSERT_FALSE(half);
    EXPECT_EQ(half.error().detail,
              "a client certificate needs its key, and the key its certificate");
}

std::vector<std::string> names_in(std::string const& file) {
    Handle<BIO, BIO_free> const in(BIO_new_file(file.c_str(), "r"));
    Certificate const certificate(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
    return certificate_names(certificate.get());
}

TEST_F(ClientCertificates, TheFirstKindOfNameCounts) {
    auto const names = [&](std::string alternatives, std::string common_name = "cn") {
        return names_in(authority
                            .issue({.common_name = std::move(common_name),
                                    .alternatives = std::move(alternatives)})
                            .certificate_file);
    };
    EXPECT_THAT(names("DNS:b,URI:x:1,DNS:a,URI:x:2"), ElementsAre("x:1", "x:2"));
    EXPECT_THAT(names("email:a@b,DNS:b,DNS:*.a"), ElementsAre("b", "*.a"));
    EXPECT_THAT(names("email:a@b"), ElementsAre("cn"));
    EXPECT_THAT(names(""), ElementsAre("cn"));
    EXPECT_THAT(names("", ""), IsEmpty());
    EXPECT_THAT(names("", "two words"), IsEmpty()) << "such a name could be taken for another";
    EXPECT_THAT(names("", "é"), IsEmpty());
    EXPECT_THAT(names("URI:a b,DNS:c"), IsEmpty()) << "its URI counts, and can't be used";
    EXPECT_THAT(names("", std::string(64, 'n')), ElementsAre(std::string(64, 'n')));
}

TEST(CertificateNames, AreVisibleAscii) {
    EXPECT_TRUE(valid_certificate_name("spiffe://fleet/a?b=*"));
    EXPECT_TRUE(valid_certificate_name(std::string(255, 'a')));
    for (auto const& wrong :
         {std::string(), std::string(256, 'a'), std::string("a b"), std::string("a\0b", 3),
          std::string("a\x7f"), std::string("\xc3\xa9")})
        EXPECT_FALSE(valid_certificate_name(wrong)) << wrong;
}

}  // namespace
}  // namespace vfmgr::http
