// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "api/http/listening.hpp"
#include "tests/unit/api/http/harness.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;

// A server that answers its one connection with these octets, whatever the request, and then ends.
struct Scripted {
    explicit Scripted(std::string answer) {
        auto opened = open_listening(UnixListen{path, {}, 0600});
        EXPECT_TRUE(opened);
        socket = std::move(*opened);
        thread = std::thread([this, answer = std::move(answer)] {
            pollfd waiting{.fd = socket.fd.get(), .events = POLLIN, .revents = 0};
            if (::poll(&waiting, 1, 20'000) != 1) return;
            FileDescriptor const fd(::accept4(socket.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
            char buffer[4096];
            (void)::recv(fd.get(), buffer, sizeof buffer, 0);
            (void)::send(fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
        });
    }
    ~Scripted() { thread.join(); }
    [[nodiscard]] Result<Response> ask() const {
        return Client(UnixTarget{path}).send(get("/"), 20s);
    }

    Folder folder;
    std::string path = folder.file("socket");
    ListeningSocket socket;
    std::thread thread;
};

TEST(Client, NobodyThereIsUnavailableAndNamesTheSocket) {
    Folder const folder;
    auto const path = folder.file("socket");
    auto const response = Client(UnixTarget{path}).send(get("/"), 20s);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().problem, Problem::unavailable);
    EXPECT_NE(response.error().detail.find(path), std::string::npos);
    EXPECT_NE(response.error().remedy.find("systemctl start vfmgrd"), std::string::npos);
    EXPECT_EQ(response.error().causes.front().code, "ENOENT");
    auto const tls =
        Client(TlsTarget{.host = "127.0.0.1", .port = 1, .fingerprint = std::string(64, 'a')})
            .send(get("/"), 20s);
    ASSERT_FALSE(tls);
    EXPECT_EQ(tls.error().problem, Problem::unavailable);
    EXPECT_NE(tls.error().detail.find("https://127.0.0.1:1"), std::string::npos);
}

TEST(Client, TheDeadlineIsReal) {
    Counter called;
    std::vector<Respond> kept;
    TestServer const test([&](Request, Respond respond) {
        kept.push_back(std::move(respond));
        called.add();
    });
    auto const start = std::chrono::steady_clock::now();
    auto const response = test.client().send(get("/"), 1s);
    auto const took = std::chrono::steady_clock::now() - start;
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().problem, Problem::timed_out);
    EXPECT_NE(response.error().detail.find("is not known"), std::string::npos);
    EXPECT_GE(took, 900ms);
    EXPECT_LT(took, 5s);
    EXPECT_TRUE(called.reaches(1));
}

TEST(Client, AListenerThatNeverAcceptsTimesOutToo) {
    Folder const folder;
    auto const path = folder.file("socket");
    auto const socket = open_listening(UnixListen{path, {}, 0600});
    ASSERT_TRUE(socket);
    ASSERT_EQ(::listen(socket->fd.get(), 0), 0);
    RawClient const fills_the_backlog(path);
    auto const start = std::chrono::steady_clock::now();
    auto const response = Client(UnixTarget{path}).send(get("/"), 1s);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().problem, Problem::timed_out);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s);
}

TEST(Client, SocketPermissionsAreNamed) {
    if (::geteuid() == 0) GTEST_SKIP() << "root may connect everywhere";
    Folder const folder;
    auto const path = folder.file("socket");
    auto const socket = open_listening(UnixListen{path, {}, 0000});
    ASSERT_TRUE(socket);
    auto const response = Client(UnixTarget{path}).send(get("/"), 20s);
    ASSERT_FALSE(response);
    EXPECT_EQ(response.error().problem, Problem::forbidden);
}

TEST(Client, AnAnswerCutShortIsUnavailable) {
    auto const nothing = Scripted("").ask();
    ASSERT_FALSE(nothing);
    EXPECT_EQ(nothing.error().problem, Problem::unavailable);
    EXPECT_NE(nothing.error().detail.find("is not known"), std::string::npos);
    EXPECT_FALSE(Scripted("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc").ask());
    EXPECT_FALSE(Scripted("nonsense\r\n\r\n").ask());
}

TEST(Client, ATooLargeAnswerIsRefused) {
    auto const large = Scripted("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nabc").ask();
    ASSERT_FALSE(large);
    EXPECT_EQ(large.error().problem, Problem::limit_exceeded);
    auto const header =
        Scripted("HTTP/1.1 200 OK\r\nX: " + std::string(200'000, 'a') + "\r\n\r\n").ask();
    EXPECT_FALSE(header);
}

TEST(Client, AnAnswerWithoutLengthEndsWithTheConnection) {
    auto const response = Scripted("HTTP/1.1 200 OK\r\nETag: \"7\"\r\n\r\nall of it").ask();
    ASSERT_TRUE(response) << response.error().detail;
    EXPECT_EQ(response->body, "all of it");
    EXPECT_EQ(response->headers.at("etag"), "\"7\"");
}

TEST(Client, SendsTokenAndEncodedPathAndNoSecondHeader) {
    Request seen;
    TestServer const test([&](Request request, Respond respond) {
        seen = request;
        respond({});
    });
    auto client = test.client();
    client.set_bearer_token("secret");
    auto request = get("/v1/a b/ü");
    request.query = {{"q", "1&2=3 +"}};
    request.headers["if-match"] = "\"3\"";
    ASSERT_TRUE(client.send(request, 20s));
    EXPECT_EQ(seen.path, "/v1/a b/ü");
    EXPECT_EQ(seen.query.at("q"), "1&2=3 +");
    EXPECT_EQ(seen.headers.at("if-match"), "\"3\"");
    EXPECT_EQ(seen.headers.at("authorization"), "Bearer secret");
    request.headers["x"] = "a\r\nY: b";
    auto const injected = client.send(request, 20s);
    ASSERT_FALSE(injected);
    EXPECT_EQ(injected.error().problem, Problem::invalid_request);
    client.set_bearer_token("a\nb");
    EXPECT_FALSE(client.send(get("/"), 20s));
}

TEST(Client, HeadHasNoBody) {
    TestServer const test;
    auto request = get("/a");
    request.method = "HEAD";
    auto const response = test.client().send(request, 20s);
    ASSERT_TRUE(response) << response.error().detail;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "");
    EXPECT_EQ(response->headers.at("content-length"), "6");
}

}  // namespace
}  // namespace vfmgr::http
