// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>

#include "tests/unit/api/http/tls_harness.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;

mode_t mode_of(std::string const& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
}

std::string text_of(std::string const& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Tls, TheRightFingerprintIsAccepted) {
    TlsServer const test;
    auto const fingerprint = certificate_fingerprint(test.certificate);
    ASSERT_TRUE(fingerprint);
    EXPECT_EQ(fingerprint->size(), 64u);
    auto const response = test.ask({.fingerprint = *fingerprint});
    ASSERT_TRUE(response) << response.error().detail;
    EXPECT_EQ(response->body, "GET /a");
    // As `openssl x509 -fingerprint -sha256` prints it.
    std::string colons;
    for (std::size_t i = 0; i < 64; i += 2) {
        if (i > 0) colons += ':';
        colons += static_cast<char>(std::toupper((*fingerprint)[i]));
        colons += static_cast<char>(std::toupper((*fingerprint)[i + 1]));
    }
    EXPECT_TRUE(test.ask({.fingerprint = colons}));
}

TEST(Tls, AWrongFingerprintIsRefusedAndNamed) {
    TlsServer const test;
    auto const response = test.ask({.fingerprint = std::string(64, 'a')});
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().problem, Problem::unavailable);
    EXPECT_NE(response.error().detail.find(*certificate_fingerprint(test.certificate)),
              std::string::npos);
    auto const nonsense = test.ask({.fingerprint = "abc"});
    ASSERT_FALSE(nonsense);
    EXPECT_EQ(nonsense.error().problem, Problem::invalid_request);
}

TEST(Tls, TheCertificateItselfServesAsCaFile) {
    TlsServer const test;
    auto const by_address = test.ask({.ca_file = test.certificate});
    EXPECT_TRUE(by_address) << by_address.error().detail;
    auto const by_name = test.ask({.host = "localhost", .ca_file = test.certificate});
    EXPECT_TRUE(by_name) << by_name.error().detail;
}

TEST(Tls, AnotherCaOrAnotherNameIsRefused) {
    TlsServer const test({"vfmgr.example"});
    TlsServer const other;
    auto const wrong_ca = test.ask({.ca_file = other.certificate});
    ASSERT_FALSE(wrong_ca);
    EXPECT_NE(wrong_ca.error().detail.find("is not trusted"), std::string::npos)
        << wrong_ca.error().detail;
    auto const wrong_name = test.ask({.ca_file = test.certificate});
    ASSERT_FALSE(wrong_name);
    EXPECT_NE(wrong_name.error().detail.find("mismatch"), std::string::npos)
        << wrong_name.error().detail;
    auto const nothing = test.ask({});
    ASSERT_FALSE(nothing);
    EXPECT_EQ(nothing.error().problem, Problem::invalid_request);
}

// A certificate signed by a CA and the valid fingerprint of another one: both checks count.
TEST(Tls, CaFileAndFingerprintBothCount) {
    TlsServer const test;
    auto const response =
        test.ask({.ca_file = test.certificate, .fingerprint = std::string(64, 'b')});
    ASSERT_FALSE(response);
    EXPECT_NE(response.error().detail.find("not the expected"), std::string::npos);
}

TEST(Tls, PipelinedRequestsAndAnOrderlyEnd) {
    TlsServer const test;
    RawTls client(test.port);
    client.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    client.send("GET /3 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    auto const all = client.everything();
    EXPECT_LT(all.find("GET /1"), all.find("GET /2"));
    EXPECT_TRUE(all.ends_with("GET /3")) << all;
}

TEST(Tls, ASlowRequestIs408) {
    Limits limits;
    limits.first_request_seconds_max = 1s;
    TlsServer const test({"a"}, limits);
    RawTls client(test.port);
    client.send("GET / HTTP/1.1\r\nHost");
    auto const answer = client.everything();
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 408 ")) << answer;
    EXPECT_NE(answer.find("\"timed_out\""), std::string::npos);
}

// Authenticates the client.
void know(Request request, Respond respond) {
    bool const known = request.path != "/known" || make_known(request, {"client"});
    EXPECT_TRUE(known);
    Response response;
    response.body = request.path;
    respond(std::move(response));
}

TEST(Tls, AHandlerLearnsTheAddressThatWasReached) {
    TlsServer const test({"a"}, {}, [](Request request, Respond const& respond) {
        Response response;
        response.body = std::get<TcpPeer>(request.peer).reached_at;
        respond(std::move(response));
    });
    RawTls client(test.port);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_NE(client.everything().find("\r\n\r\n127.0.0.1"), std::string::npos);
}

TEST(Tls, WhoShakesNoHandEndsSoon) {
    Limits limits;
    limits.first_request_seconds_max = 1s;
    limits.read_seconds_max = 300s;
    TlsServer const test({"a"}, limits);
    auto const silent = connected(test.port);
    auto const start = std::chrono::steady_clock::now();
    EXPECT_TRUE(ended(silent));
    EXPECT_LT(std::chrono::steady_clock::now() - start, 15s);
}

TEST(Tls, AStrangersConnectionEndsWithItsAnswer) {
    TlsServer const test({"a"}, {}, know);
    RawTls client(test.port);
    client.send("GET /unknown HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_NE(client.everything().find("Connection: close"), std::string::npos);
}

TEST(Tls, StrangersHaveAShareUntilSomebodyAtTheirAddressIsKnown) {
    Limits limits;
    limits.strangers_per_peer_max = 2;
    Counter turned_away;
    std::string why;
    TlsServer test({"a"}, limits, know);
    test.server.on_turned_away([&](Peer const& peer, Error const& error) {
        why = std::get<TcpPeer>(peer).address + ": " + error.detail;
        turned_away.add();
    });
    std::vector<FileDescriptor> silent;
    for (int i = 0; i < 3; ++i) silent.push_back(connected(test.port));
    EXPECT_TRUE(ended(silent[0])) << "the oldest";
    ASSERT_TRUE(turned_away.reaches(1));
    EXPECT_EQ(why, "127.0.0.1: its connection, on which nobody authenticated, made room");
    auto const fingerprint = *certificate_fingerprint(test.certificate);
    auto const ask = [&](std::string const& path) {
        return Client(TlsTarget{"127.0.0.1", test.port, {}, fingerprint}).send(get(path), 20s);
    };
    ASSERT_TRUE(ask("/known"));
    EXPECT_EQ(turned_away.count(), 2);
    for (int i = 0; i < 4; ++i) silent.push_back(connected(test.port));
    EXPECT_TRUE(ask("/unknown")) << "somebody at this address is known";
    EXPECT_EQ(turned_away.count(), 2);
}

TEST(Tls, OlderVersionsAreRefused) {
    TlsServer const test;
    std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> const context(
        SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    for (long const version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        SSL_CTX_set_max_proto_version(context.get(), version);
        std::unique_ptr<SSL, decltype(&SSL_free)> const session(SSL_new(context.get()), &SSL_free);
        FileDescriptor const fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(test.port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ASSERT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        ASSERT_EQ(SSL_set_fd(session.get(), fd.get()), 1);
        EXPECT_EQ(SSL_connect(session.get()) == 1, version == TLS1_3_VERSION);
    }
}

TEST(Tls, ManyRequestsLeaveNoDescriptorBehind) {
    TlsServer const test;
    auto const pin = *certificate_fingerprint(test.certificate);
    ASSERT_TRUE(test.ask({.fingerprint = pin}));
    auto const before = open_descriptors();
    for (int i = 0; i < 50; ++i) EXPECT_TRUE(test.ask({.fingerprint = pin}));
    EXPECT_LE(open_descriptors(), before + 4);
}

TEST(Tls, PlainTextIsCut) {
    TlsServer const test;
    FileDescriptor const fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(test.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_GT(::send(fd.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 0);
    std::string received;
    char buffer[512];
    for (ssize_t size = 1; size > 0;) {
        size = ::recv(fd.get(), buffer, sizeof buffer, 0);
        if (size > 0) received.append(buffer, static_cast<std::size_t>(size));
    }
    EXPECT_EQ(received.find("HTTP"), std::string::npos);
}

TEST(SelfSigned, KeyIsSecretAndCertificateNamesTheHost) {
    Folder const folder;
    auto const certificate = folder.file("cert.pem");
    auto const key = folder.file("key.pem");
    auto const before = ::umask(0);
    auto const made = make_self_signed(certificate, key, {"host.example", "10.0.0.1", "fd00::1"});
    ::umask(before);
    ASSERT_TRUE(made) << made.error().detail;
    EXPECT_EQ(mode_of(key), 0600u);
    EXPECT_EQ(mode_of(certificate), 0644u);
    std::unique_ptr<BIO, decltype(&BIO_free)> const file(BIO_new_file(certificate.c_str(), "r"),
                                                         &BIO_free);
    std::unique_ptr<X509, decltype(&X509_free)> const read(
        PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr), &X509_free);
    ASSERT_TRUE(read);
    EXPECT_EQ(X509_check_host(read.get(), "host.example", 0, 0, nullptr), 1);
    EXPECT_EQ(X509_check_host(read.get(), "other.example", 0, 0, nullptr), 0);
    EXPECT_EQ(X509_check_ip_asc(read.get(), "10.0.0.1", 0), 1);
    EXPECT_EQ(X509_check_ip_asc(read.get(), "fd00::1", 0), 1);
    int days = 0;
    int seconds = 0;
    ASSERT_EQ(ASN1_TIME_diff(&days, &seconds, nullptr, X509_get0_notAfter(read.get())), 1);
    EXPECT_GE(days, 3640);
    EXPECT_LE(days, 3653);
    EXPECT_EQ(EVP_PKEY_get_bits(X509_get0_pubkey(read.get())), 256);
}

TEST(SelfSigned, IsReplacedIfThatIsAskedFor) {
    Folder const folder;
    auto const certificate = folder.file("cert.pem");
    auto const key = folder.file("key.pem");
    ASSERT_TRUE(make_self_signed(certificate, key, {"a", "10.0.0.1", "fd00::1"}));
    auto const before = read_certificate(certificate).value();
    EXPECT_EQ(before.names, (std::vector<std::string>{"a", "10.0.0.1", "fd00::1"}));
    EXPECT_EQ(before.fingerprint, certificate_fingerprint(certificate));
    EXPECT_TRUE(before.made_here);
    auto const in_ten_years = std::chrono::system_clock::now() + std::chrono::hours(24 * 3650);
    EXPECT_LT(std::chrono::abs(before.expires_at - in_ten_years), std::chrono::hours(1));
    auto const key_before = text_of(key);
    ASSERT_TRUE(make_self_signed(certificate, key, {"b"}, Existing::replaced));
    EXPECT_EQ(read_certificate(certificate)->names, std::vector<std::string>{"b"});
    EXPECT_EQ(text_of(key), key_before);
    EXPECT_EQ(mode_of(certificate), 0644u);
    EXPECT_TRUE(check_certificate({.certificate_file = certificate, .key_file = key}));
}

TEST(SelfSigned, NothingIsOverwritten) {
    Folder const folder;
    auto const certificate = folder.file("cert.pem");
    auto const key = folder.file("key.pem");
    ASSERT_TRUE(make_self_signed(certificate, key, {"a"}));
    auto const first_key = text_of(key);
    auto const again = make_self_signed(certificate, key, {"a"});
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().problem, Problem::conflict);
    EXPECT_EQ(text_of(key), first_key);
    // A crash after the key was written: the next start makes the certificate for that key.
    std::filesystem::remove(certificate);
    ASSERT_TRUE(make_self_signed(certificate, key, {"a"}));
    EXPECT_EQ(text_of(key), first_key);
    Server server{Limits{}};
    EXPECT_TRUE(server.listen(TlsListen{.address = "127.0.0.1",
                                        .port = test::free_port(),
                                        .certificate_file = certificate,
                                        .key_file = key},
                              echo));
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.file("")), {}), 2)
        << "temporary files are left";
}

TEST(SelfSigned, BadNamesAndFoldersAreRefused) {
    Folder const folder;
    auto const certificate = folder.file("cert.pem");
    auto const key = folder.file("key.pem");
    EXPECT_FALSE(make_self_signed(certificate, key, {}));
    auto const injected = make_self_signed(certificate, key, {"a,DNS:b"});
    ASSERT_FALSE(injected);
    EXPECT_EQ(injected.error().problem, Problem::invalid_request);
    auto const nowhere =
        make_self_signed(folder.file("no/cert.pem"), folder.file("no/key.pem"), {"a"});
    ASSERT_FALSE(nowhere);
    EXPECT_EQ(nowhere.error().problem, Problem::kernel_refused);
    EXPECT_EQ(nowhere.error().causes.front().code, "ENOENT");
}

TEST(SelfSigned, AServerRefusesAKeyOfAnotherCertificate) {
    TlsServer const one;
    TlsServer const other;
    Server server{Limits{}};
    auto const mixed = server.listen(TlsListen{.address = "127.0.0.1",
                                               .port = test::free_port(),
                                               .certificate_file = one.certificate,
                                               .key_file = other.key},
                                     echo);
    ASSERT_FALSE(mixed);
    EXPECT_NE(mixed.error().detail.find(other.key), std::string::npos);
    EXPECT_FALSE(certificate_fingerprint(one.key));
    EXPECT_FALSE(certificate_fingerprint(one.folder.file("none")));
}

}  // namespace
}  // namespace vfmgr::http
