// SPDX-License-Identifier: Apache-2.0
// Many clients at one TLS listener: what strangers do costs nobody a place who authenticates.
#include <thread>

#include "tests/unit/api/http/tls_harness.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;

// Knows a client by the name in X-Who. Parks what asks for /keep.
struct Crowd {
    explicit Crowd(Limits limits = {})
        : test({"127.0.0.1"}, limits, [this](auto request, auto respond) {
              answer(std::move(request), std::move(respond));
          }) {}
    void answer(Request request, Respond respond) {
        auto const who = request.headers.find("x-who");
        if (who != request.headers.end())
            if (auto const place = make_known(request, {who->second}); !place)
                return respond(problem_response(place.error(), request));
        if (request.path == "/keep") {
            std::lock_guard const lock(mutex);
            kept.push_back(std::move(respond));
            parked.add();
            return;
        }
        respond({.status = 200, .headers = {}, .body = "served"});
    }
    [[nodiscard]] Result<Response> ask(std::string const& who, std::string path = "/") const {
        auto request = get(std::move(path));
        request.headers["x-who"] = who;
        return Client(TlsTarget{.host = "127.0.0.1", .port = test.port, .fingerprint = fingerprint})
            .send(request, 20s);
    }
    void expect_served(std::string const& who) const {
        auto const answer = ask(who);
        ASSERT_TRUE(answer) << answer.error().detail;
        EXPECT_EQ(answer->status, 200) << answer->body;
    }

    std::mutex mutex;
    std::vector<Respond> kept;
    Counter parked;
    TlsServer test;
    std::string fingerprint = *certificate_fingerprint(test.certificate);
};

TEST(Crowd, SilentConnectionsFromTheSameAddressLockNobodyOut) {
    Crowd const crowd;
    std::vector<FileDescriptor> silent;
    for (int i = 0; i < 600; ++i) {
        silent.push_back(connected(crowd.test.port));
        if (i % 50 == 49) crowd.expect_served("first");
    }
    crowd.expect_served("another");
}

TEST(Crowd, SilentConnectionsFromManyAddressesLockNobodyOut) {
    Crowd const crowd;
    std::vector<FileDescriptor> silent;
    for (std::uint32_t from = 1; from <= 300; ++from)
        for (int i = 0; i < 2; ++i)
            silent.push_back(connected(crowd.test.port, INADDR_LOOPBACK + (from << 8)));
    crowd.expect_served("first");
    crowd.expect_served("another");
}

TEST(Crowd, PrincipalsBehindOneAddressHavePlacesOfTheirOwn) {
    Limits limits;
    limits.connections_per_peer_max = 2;
    Crowd crowd(limits);
    std::vector<std::unique_ptr<RawTls>> waiting;
    for (auto const* who : {"a", "a", "b", "b", "c", "c"}) {
        waiting.push_back(std::make_unique<RawTls>(crowd.test.port));
        waiting.back()->send(std::string("GET /keep HTTP/1.1\r\nHost: a\r\nX-Who: ") + who +
                             "\r\n\r\n");
    }
    ASSERT_TRUE(crowd.parked.reaches(6));
    auto const refused = crowd.ask("a");
    ASSERT_TRUE(refused) << refused.error().detail;
    EXPECT_EQ(refused->status, 503) << refused->body;
    EXPECT_NE(refused->body.find("a already has all the connections that it may have"),
              std::string::npos);
    crowd.expect_served("d");
    for (auto& respond : crowd.kept) respond({.status = 204});
    for (auto& one : waiting) one->send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    for (auto& one : waiting)
        EXPECT_NE(one->everything().find("HTTP/1.1 204"), std::string::npos) << "none was cut";
}

// What a principal holds open is not in the way of others, and theirs not in its way.
TEST(Crowd, AuthenticatedConnectionsSurviveAFloodOfSilentOnes) {
    Limits limits;
    limits.connections_max = 8;
    Crowd crowd(limits);
    std::vector<std::unique_ptr<RawTls>> waiting;
    for (int i = 0; i < 4; ++i) {
        waiting.push_back(std::make_unique<RawTls>(crowd.test.port));
        waiting.back()->send("GET /keep HTTP/1.1\r\nHost: a\r\nX-Who: a\r\n\r\n");
    }
    ASSERT_TRUE(crowd.parked.reaches(4));
    std::vector<FileDescriptor> silent;
    for (int i = 0; i < 100; ++i) silent.push_back(connected(crowd.test.port));
    crowd.expect_served("b");
    for (auto& respond : crowd.kept) respond({.status = 204});
    for (auto& one : waiting) one->send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    for (auto& one : waiting) EXPECT_NE(one->everything().find("HTTP/1.1 204"), std::string::npos);
}

// An orchestrator that opens many connections at once has the most of all that are strangers.
TEST(Crowd, AFloodFromElsewhereCutsNoKnownHostWhileItConnects) {
    Limits limits;
    limits.connections_max = 16;
    Crowd const crowd(limits);
    crowd.expect_served("orchestrator");
    std::vector<std::unique_ptr<RawTls>> connecting;
    for (int i = 0; i < 4; ++i) connecting.push_back(std::make_unique<RawTls>(crowd.test.port));
    std::vector<FileDescriptor> silent;
    for (std::uint32_t from = 1; from <= 100; ++from)
        silent.push_back(connected(crowd.test.port, INADDR_LOOPBACK + (from << 8)));
    crowd.expect_served("orchestrator");
    for (auto& one : connecting)
        one->send("GET / HTTP/1.1\r\nHost: a\r\nX-Who: orchestrator\r\nConnection: close\r\n\r\n");
    for (auto& one : connecting)
        EXPECT_NE(one->everything().find("HTTP/1.1 200"), std::string::npos);
}

// Those that finish the handshake, and then send their request octet by octet.
TEST(Crowd, SlowConnectionsLockNobodyOut) {
    Crowd const crowd;
    std::vector<std::unique_ptr<RawTls>> slow;
    for (int i = 0; i < 250; ++i) {
        slow.push_back(std::make_unique<RawTls>(crowd.test.port));
        slow.back()->send("G");
        if (i % 50 == 49) crowd.expect_served("first");
    }
    crowd.expect_served("another");
}

}  // namespace
}  // namespace vfmgr::http
