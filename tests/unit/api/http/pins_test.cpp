// SPDX-License-Identifier: Apache-2.0
// What a client knows of its server beforehand: a key, or the hash of a CA.
#include <gmock/gmock.h>

#include <fstream>

#include "api/http/authority.hpp"
#include "tests/unit/api/http/tls_harness.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::string pin_content_of(std::string const& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// A server whose certificate a CA has signed; it sends the CA's certificate, too.
struct SignedServer : testing::Test {
    SignedServer() {
        EXPECT_TRUE(
            issue(ca, {.common_name = "a", .names = {"127.0.0.1"}, .for_servers = true}, files));
        EXPECT_TRUE(server.listen(where(), echo));
        server.start();
    }
    [[nodiscard]] TlsListen where() const {
        return {.address = "127.0.0.1",
                .port = port,
                .certificate_file = files.certificate_file,
                .key_file = files.key_file};
    }
    [[nodiscard]] Result<Response> ask(TlsTarget target) const {
        target.port = port;
        if (target.host.empty()) target.host = "127.0.0.1";
        return Client(target).send(get("/a"), 20s);
    }
    [[nodiscard]] std::string refusal(TlsTarget target) const {
        auto const answer = ask(std::move(target));
        if (answer) return answer->body;
        EXPECT_FALSE(answer.error().remedy.empty());
        return std::string(code(answer.error().problem)) + ": " + answer.error().detail;
    }

    Folder folder;
    CertificateAuthority ca = make_authority(folder.file("ca"), "fleet").value();
    std::string ca_sha256 = certificate_fingerprint(ca.certificate_file).value();
    IssuedFiles files{folder.file("a.pem"), folder.file("a.key")};
    std::uint16_t port = test::free_port();
    Server server{Limits{}};
};

TEST_F(SignedServer, TheKeysPinSurvivesARenewalAndNoOtherKey) {
    auto const pin = public_key_of(files.certificate_file).value();
    EXPECT_EQ(pin.size(), 64U);
    EXPECT_NE(pin, certificate_fingerprint(files.certificate_file));
    EXPECT_EQ(read_certificate(files.certificate_file)->public_key, pin);
    EXPECT_EQ(refusal({.public_key = pin}), "GET /a");
    ASSERT_TRUE(issue(ca, {.common_name = "b", .names = {"b"}, .for_servers = true}, files,
                      Existing::replaced));
    ASSERT_TRUE(server.renew(where()));
    EXPECT_EQ(refusal({.public_key = pin}), "GET /a");
    std::filesystem::remove(files.key_file);
    ASSERT_TRUE(issue(ca, {.common_name = "b", .names = {"b"}, .for_servers = true}, files,
                      Existing::replaced));
    ASSERT_TRUE(server.renew(where()));
    EXPECT_EQ(refusal({.public_key = pin}), "unavailable: 127.0.0.1 port " + std::to_string(port) +
                                                " showed a certificate whose key has SHA-256 " +
                                                public_key_of(files.certificate_file).value() +
                                                ", not the expected " + pin);
    EXPECT_EQ(refusal({.public_key = "12"}),
              "invalid_request: '12' is not a SHA-256 digest of a public key");
}

// As `openssl pkey -pubin -outform DER | sha256sum` computes it.
TEST_F(SignedServer, TheKeysPinIsThatOfItsSubjectPublicKeyInfo) {
    auto const command = "openssl x509 -in " + files.certificate_file +
                         " -noout -pubkey | openssl pkey -pubin -outform DER | sha256sum";
    std::unique_ptr<FILE, decltype(&::pclose)> const pipe(::popen(command.c_str(), "r"), &::pclose);
    char text[65] = {};
    ASSERT_EQ(std::fread(text, 1, 64, pipe.get()), 64U);
    EXPECT_EQ(public_key_of(files.certificate_file), text);
}

TEST_F(SignedServer, EveryPinThatIsGivenCounts) {
    auto const pin = public_key_of(files.certificate_file).value();
    EXPECT_EQ(refusal({.ca_file = ca.certificate_file, .public_key = pin, .ca_sha256 = ca_sha256}),
              "GET /a");
    std::string const wrong(64, '0');
    EXPECT_THAT(refusal({.fingerprint = wrong, .public_key = pin}), HasSubstr("unavailable"));
    EXPECT_THAT(refusal({.public_key = wrong, .ca_sha256 = ca_sha256}), HasSubstr("unavailable"));
    EXPECT_THAT(refusal({.public_key = pin, .ca_sha256 = wrong}), HasSubstr("unavailable"));
}

TEST_F(SignedServer, TheHashOfACaSufficesToReachItAndToReadIt) {
    EXPECT_EQ(refusal({.ca_sha256 = ca_sha256}), "GET /a");
    auto const read = fetch_ca({.host = "127.0.0.1", .port = port, .ca_sha256 = ca_sha256}, 20s);
    ASSERT_TRUE(read) << read.error().detail;
    EXPECT_EQ(*read, pin_content_of(ca.certificate_file));
    EXPECT_EQ(refusal({.host = "localhost", .ca_sha256 = ca_sha256}),
              "unavailable: the CA with SHA-256 " + ca_sha256 +
                  " has not signed the certificate that localhost port " + std::to_string(port) +
                  " showed for this name: hostname mismatch");
    auto const nothing =
        fetch_ca({.host = "127.0.0.1", .port = port, .public_key = ca_sha256}, 20s);
    ASSERT_FALSE(nothing);
}

TEST_F(SignedServer, ACaThatIsNotSentOrHasNotSignedIsRefused) {
    auto const other = make_authority(folder.file("other"), "fleet").value();
    auto const other_sha256 = certificate_fingerprint(other.certificate_file).value();
    EXPECT_THAT(refusal({.ca_sha256 = other_sha256}),
                HasSubstr("did not send the CA certificate with SHA-256 " + other_sha256));
    // A server in between may send any certificate, but has no key of the CA's.
    auto const leaf = pin_content_of(files.certificate_file);
    std::ofstream(files.certificate_file, std::ios::app) << pin_content_of(other.certificate_file);
    ASSERT_TRUE(server.renew(where()));
    EXPECT_THAT(refusal({.ca_sha256 = other_sha256}), HasSubstr("has not signed the certificate"));
    auto const own = certificate_fingerprint(files.certificate_file).value();
    EXPECT_THAT(refusal({.ca_sha256 = own}), HasSubstr("it is no CA's certificate"));
}

}  // namespace
}  // namespace vfmgr::http
