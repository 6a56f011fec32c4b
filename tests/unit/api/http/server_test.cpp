// SPDX-License-Identifier: Apache-2.0
#include <grp.h>
#include <sys/stat.h>

#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/unit/api/http/harness.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;

TEST(Server, AnswersAClient) {
    TestServer const test;
    auto request = get("/v1/pfs");
    request.method = "PUT";
    request.query = {{"dry_run", "true"}};
    request.body = "hello";
    auto const response = test.client().send(request, 20s);
    ASSERT_TRUE(response) << response.error().detail;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(response->body, "PUT /v1/pfs dry_run=true hello");
    EXPECT_EQ(response->content_type, "text/plain");
    EXPECT_EQ(response->headers.at("cache-control"), "no-store");
    EXPECT_EQ(response->headers.at("x-request-id").size(), 32u);
}

TEST(Server, TellsTheHandlerWhoAsks) {
    Peer seen;
    TestServer const test([&](Request request, Respond respond) {
        seen = request.peer;
        respond({});
    });
    ASSERT_TRUE(test.client().send(get("/"), 20s));
    auto const peer = std::get<UnixPeer>(seen);
    EXPECT_EQ(peer.uid, ::geteuid());
    EXPECT_EQ(peer.gid, ::getegid());
    EXPECT_EQ(peer.pid, ::getpid());
    std::vector<gid_t> groups(static_cast<std::size_t>(::getgroups(0, nullptr)));
    ASSERT_EQ(::getgroups(static_cast<int>(groups.size()), groups.data()),
              static_cast<int>(groups.size()));
    EXPECT_EQ(peer.groups, groups);
}

TEST(Server, TakesOverAValidRequestIdOnly) {
    TestServer const test;
    auto request = get("/");
    request.headers["x-request-id"] = "abc-1.2_3";
    EXPECT_EQ(test.client().send(request, 20s)->headers.at("x-request-id"), "abc-1.2_3");
    request.headers["x-request-id"] = "a b";
    EXPECT_EQ(test.client().send(request, 20s)->headers.at("x-request-id").size(), 32u);
}

TEST(Server, KeepsConnectionsAndAnswersPipelinedRequestsInOrder) {
    TestServer const test;
    RawClient client(test.path);
    std::string requests;
    for (int i = 0; i < 20; ++i)
        requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n";
    ASSERT_TRUE(client.send(requests));
    for (int i = 0; i < 20; ++i) {
        auto const reply = client.reply();
        ASSERT_TRUE(reply) << i;
        EXPECT_EQ(reply->body, "GET /" + std::to_string(i));
    }
    ASSERT_TRUE(client.send("GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    EXPECT_EQ(client.reply()->body, "GET /last");
    EXPECT_TRUE(client.ended());
}

TEST(Server, AnswersAHalfClosedClient) {
    Counter called;
    std::mutex mutex;
    Respond later;
    TestServer const test([&](Request, Respond respond) {
        std::lock_guard const lock(mutex);
        later = std::move(respond);
        called.add();
    });
    RawClient client(test.path);
    ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    client.half_close();
    ASSERT_TRUE(called.reaches(1));
    later({.status = 200, .headers = {}, .body = "late"});
    EXPECT_EQ(client.reply()->body, "late");
    EXPECT_TRUE(client.ended());
}

TEST(Server, AnswersHeadWithoutTheBody) {
    TestServer const test;
    RawClient client(test.path);
    ASSERT_TRUE(client.send("HEAD /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    auto const reply = client.reply();
    EXPECT_FALSE(reply) << "a body came: " << reply->body;
    RawClient twice(test.path);
    ASSERT_TRUE(
        twice.send("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b HTTP/1.1\r\nHost: a\r\n\r\n"
                   "GET /c HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    twice.half_close();
    auto const all = twice.everything();
    EXPECT_EQ(all.find("GET /a"), std::string::npos);
    EXPECT_NE(all.find("Content-Length: 6"), std::string::npos);
    EXPECT_TRUE(all.ends_with("\r\n\r\nGET /c")) << all;
}

TEST(Server, AsksForTheBodyOfAnExpectingClient) {
    TestServer const test;
    RawClient client(test.path);
    ASSERT_TRUE(
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
                    "Expect: 100-continue\r\n\r\n"));
    EXPECT_EQ(client.reply()->status, 100);
    ASSERT_TRUE(client.send("body"));
    EXPECT_EQ(client.reply()->body, "POST / body");
    ASSERT_TRUE(
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
                    "Expect: miracles\r\n\r\nbody"));
    EXPECT_EQ(client.reply()->status, 417);
}

TEST(Server, TakesChunkedBodies) {
    TestServer const test;
    RawClient client(test.path);
    ASSERT_TRUE(
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"));
    EXPECT_EQ(client.reply()->body, "POST / abcde");
}

TEST(Server, TrailersAreNoHeaders) {
    std::map<std::string, std::string> seen;
    TestServer const test([&](Request request, Respond respond) {
        seen = request.headers;
        respond({});
    });
    RawClient client(test.path);
    ASSERT_TRUE(
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "1\r\na\r\n0\r\nAuthorization: Bearer x\r\n\r\n"));
    ASSERT_TRUE(client.reply());
    EXPECT_FALSE(seen.contains("authorization"));
    EXPECT_TRUE(seen.contains("transfer-encoding"));
}

TEST(Server, ServesManyAtOnceWhileOneWaits) {
    std::mutex mutex;
    std::vector<Respond> waiting;
    Counter parked;
    TestServer const test([&](Request request, Respond respond) {
        if (request.path != "/wait") return echo(std::move(request), std::move(respond));
        std::lock_guard const lock(mutex);
        waiting.push_back(std::move(respond));
        parked.add();
    });
    RawClient slow(test.path);
    ASSERT_TRUE(slow.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(parked.reaches(1));
    std::vector<std::thread> threads;
    Counter answered;
    for (int t = 0; t < 8; ++t)
        threads.emplace_back([&, t] {
            for (int i = 0; i < 25; ++i) {
                auto const path = "/" + std::to_string(t) + "/" + std::to_string(i);
                auto const response = test.client().send(get(path), 20s);
                if (response && response->body == "GET " + path) answered.add();
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(answered.count(), 200);
    waiting.front()({.status = 202, .headers = {}, .body = {}});
    EXPECT_EQ(slow.reply()->status, 202);
}

TEST(Server, AThousandRequestsLeaveNoDescriptorBehind) {
    TestServer const test;
    ASSERT_TRUE(test.client().send(get("/"), 20s));
    auto const before = open_descriptors();
    int answered = 0;
    for (int i = 0; i < 1000; ++i) answered += test.client().send(get("/x"), 20s) ? 1 : 0;
    EXPECT_EQ(answered, 1000);
    // The server notices the end of the last connections when its thread runs: a further request on
    // the same thread comes after those.
    RawClient last(test.path);
    ASSERT_TRUE(last.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(last.reply());
    EXPECT_LE(open_descriptors(), before + 4);
}

TEST(Server, ARespondMayOutliveItsConnection) {
    std::mutex mutex;
    std::vector<Respond> kept;
    Counter called;
    TestServer const test([&](Request request, Respond respond) {
        if (request.path != "/keep") return echo(std::move(request), std::move(respond));
        std::lock_guard const lock(mutex);
        kept.push_back(std::move(respond));
        called.add();
    });
    RawClient client(test.path);
    ASSERT_TRUE(client.send("GET /keep HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(called.reaches(1));
    client.close();
    kept.front()({.status = 200, .headers = {}, .body = "too late"});
    EXPECT_EQ(test.client().send(get("/still"), 20s)->body, "GET /still");
}

TEST(Server, ARespondMayOutliveTheServer) {
    Respond kept;
    Counter called;
    {
        TestServer const test([&](Request, Respond respond) {
            kept = std::move(respond);
            called.add();
        });
        RawClient client(test.path);
        ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        ASSERT_TRUE(called.reaches(1));
    }
    kept({.status = 200, .headers = {}, .body = "nobody is there"});
    kept = nullptr;
}

// Keeps requests until a test answers them.
struct Waiting {
    Counter called;
    std::mutex mutex;
    std::vector<Respond> later;

    Handler handler() {
        return [this](Request, Respond respond) {
            std::lock_guard const lock(mutex);
            later.push_back(std::move(respond));
            called.add();
        };
    }
    void answer(Response response) {
        std::lock_guard const lock(mutex);
        for (auto const& respond : later) respond(response);
        later.clear();
    }
};

TEST(Server, ThatFinishesWaitsForTheAnswers) {
    Waiting waiting;
    TestServer test(waiting.handler());
    RawClient asking(test.path);
    RawClient idle(test.path);
    ASSERT_TRUE(asking.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(waiting.called.reaches(1));
    auto finished = std::async(std::launch::async, [&] { test.server.finish(60s); });
    EXPECT_TRUE(idle.ended()) << "nothing was asked there";
    EXPECT_EQ(finished.wait_for(100ms), std::future_status::timeout);
    waiting.answer({});
    auto const reply = asking.reply();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 200);
    EXPECT_NE(reply->head.find("Connection: close"), std::string::npos) << reply->head;
    asking.close();
    EXPECT_EQ(finished.wait_for(20s), std::future_status::ready);
}

TEST(Server, ThatFinishesAnswersForWhoDoesNot) {
    Waiting waiting;
    TestServer test(waiting.handler());
    RawClient asking(test.path);
    ASSERT_TRUE(asking.send("GET /v1/x HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(waiting.called.reaches(1));
    test.server.finish(10ms);
    auto const reply = asking.reply();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 503);
    EXPECT_NE(reply->body.find("the server is stopping"), std::string::npos) << reply->body;
    EXPECT_TRUE(asking.ended());
}

TEST(Server, ThatFinishesAnswersWhatItHasBegunToRead) {
    Waiting waiting;
    TestServer test(waiting.handler());
    RawClient asking(test.path);
    RawClient sending(test.path);
    ASSERT_TRUE(asking.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(
        sending.send("GET /late HTTP/1.1\r\nExpect: 100-continue\r\nHost: a\r\n"
                     "Content-Length: 1\r\n\r\n"));
    ASSERT_TRUE(sending.readable_within(20s)) << "it is asked for its body";
    ASSERT_TRUE(waiting.called.reaches(1));
    auto finished = std::async(std::launch::async, [&] { test.server.finish(60s); });
    ASSERT_TRUE(sending.send("x"));
    ASSERT_TRUE(waiting.called.reaches(2));
    waiting.answer({});
    EXPECT_TRUE(asking.reply());
    EXPECT_EQ(sending.reply()->status, 100);
    auto const reply = sending.reply();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 200);
    EXPECT_TRUE(sending.ended());
    asking.close();
    sending.close();
    EXPECT_EQ(finished.wait_for(20s), std::future_status::ready);
}

// An answer keeps its connection open, and the server starts to shut down before it is written.
TEST(Server, ThatFinishesEndsWhatItIsWriting) {
    TestServer test([](Request const& request, Respond const& respond) {
        // More than a socket buffers while its peer reads nothing.
        std::size_t const bytes = request.path == "/long" ? 8 << 20 : 1;
        respond({.status = 200, .headers = {}, .body = std::string(bytes, 'x')});
    });
    RawClient idle(test.path);
    ASSERT_TRUE(idle.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(idle.reply());
    RawClient slow(test.path);
    ASSERT_TRUE(slow.send("GET /long HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(slow.readable_within(20s));
    auto finished = std::async(std::launch::async, [&] { test.server.finish(60s); });
    EXPECT_TRUE(idle.ended()) << "the server does not finish";
    EXPECT_TRUE(slow.reply());
    EXPECT_TRUE(slow.ended());
    slow.close();
    EXPECT_EQ(finished.wait_for(20s), std::future_status::ready);
}

TEST(Server, ThatNeverStartedFinishes) {
    Server server(Limits{});
    server.finish(60s);
}

TEST(Server, OnlyTheFirstAnswerCounts) {
    TestServer const test([](Request, Respond respond) {
        respond({.status = 201, .headers = {}, .body = "first"});
        respond({.status = 500, .headers = {}, .body = "second"});
    });
    RawClient client(test.path);
    ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_EQ(client.reply()->body, "first");
    EXPECT_EQ(client.reply()->body, "first");
}

TEST(Server, ADroppedRequestAndAnExceptionAnswer500) {
    TestServer const test([](Request request, Respond) {
        if (request.path == "/throw") throw std::runtime_error("broken");
    });
    auto const dropped = test.client().send(get("/drop"), 20s);
    ASSERT_TRUE(dropped);
    EXPECT_EQ(dropped->status, 500);
    auto const thrown = test.client().send(get("/throw"), 20s);
    ASSERT_TRUE(thrown);
    EXPECT_EQ(thrown->status, 500);
    auto const body = nlohmann::json::parse(thrown->body);
    EXPECT_EQ(body["code"], "internal");
    EXPECT_EQ(body["instance"], "/throw");
    EXPECT_EQ(body["request_id"], thrown->headers.at("x-request-id"));
}

TEST(Server, AnythingMayBeThrown) {
    TestServer const test([](Request, Respond) { throw 1; });
    EXPECT_EQ(test.client().send(get("/"), 20s)->status, 500);
    EXPECT_EQ(test.client().send(get("/"), 20s)->status, 500);
}

// A response that no HTTP message can hold is found when it is serialized, outside of the handler.
TEST(Server, AnExceptionOnTheIoThreadEndsNothingElse) {
    Counter bugs;
    Limits limits;
    limits.answer_seconds_max = 1s;
    TestServer const test(
        [](Request request, Respond respond) {
            if (request.path == "/fine") return echo(std::move(request), std::move(respond));
            respond({.status = 200, .headers = {{"X", std::string(100'000, 'a')}}, .body = {}});
        },
        limits, [&](std::string const&) { bugs.add(); });
    EXPECT_EQ(test.client().send(get("/"), 20s)->status, 504);
    EXPECT_TRUE(bugs.reaches(1));
    EXPECT_EQ(test.client().send(get("/fine"), 20s)->status, 200);
}

}  // namespace
}  // namespace vfmgr::http
