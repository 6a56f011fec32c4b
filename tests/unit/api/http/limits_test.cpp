// SPDX-License-Identifier: Apache-2.0
#include <future>
#include <nlohmann/json.hpp>

#include "tests/unit/api/http/harness.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;

Limits small() {
    Limits limits;
    limits.body_bytes_max = 1000;
    limits.header_bytes_max = 1000;
    limits.connections_max = 4;
    limits.connections_per_peer_max = 3;
    limits.read_seconds_max = 1s;
    limits.idle_seconds_max = 1s;
    limits.answer_seconds_max = 1s;
    return limits;
}

void expect_problem(std::optional<Reply> const& reply, int status, std::string const& code) {
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, status) << reply->body;
    EXPECT_NE(reply->head.find("Content-Type: application/problem+json"), std::string::npos);
    EXPECT_NE(reply->head.find("X-Request-Id: "), std::string::npos);
    auto const body = nlohmann::json::parse(reply->body);
    EXPECT_EQ(body["status"], status);
    EXPECT_EQ(body["code"], code);
    EXPECT_FALSE(body["detail"].get<std::string>().empty());
    EXPECT_FALSE(body["remedy"].get<std::string>().empty());
}

std::string post(std::size_t length) {
    return "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
}

TEST(Limits, BodyIs413) {
    TestServer const test(echo, small());
    RawClient fits(test.path);
    ASSERT_TRUE(fits.send(post(1000) + std::string(1000, 'a')));
    EXPECT_EQ(fits.reply()->status, 200);

    RawClient announced(test.path);
    ASSERT_TRUE(announced.send(post(1001)));
    expect_problem(announced.reply(), 413, "limit_exceeded");
    announced.half_close();
    EXPECT_TRUE(announced.ended());

    RawClient chunked(test.path);
    ASSERT_TRUE(
        chunked.send("POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "3e9\r\n" +
                     std::string(1001, 'a') + "\r\n0\r\n\r\n"));
    expect_problem(chunked.reply(), 413, "limit_exceeded");
}

TEST(Limits, TheAnswer413ReachesAClientThatStillSends) {
    TestServer const test(echo, small());
    auto request = get("/a");
    request.method = "POST";
    request.body = std::string(8 * 1024 * 1024, 'a');
    auto const response = test.client().send(request, 20s);
    ASSERT_TRUE(response) << response.error().detail;
    EXPECT_EQ(response->status, 413);
}

TEST(Limits, HeaderIs431) {
    TestServer const test(echo, small());
    RawClient long_value(test.path);
    ASSERT_TRUE(
        long_value.send("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(1000, 'a') + "\r\n\r\n"));
    expect_problem(long_value.reply(), 431, "limit_exceeded");
    RawClient endless(test.path);
    ASSERT_TRUE(endless.send("GET /" + std::string(5000, 'a')));
    expect_problem(endless.reply(), 431, "limit_exceeded");
}

TEST(Limits, MalformedIs400) {
    TestServer const test;
    for (auto const* text :
         {"nonsense\r\n\r\n", "GET / HTTP/3.0\r\n\r\n", "GET / HTTP/1.1\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET /%zz HTTP/1.1\r\nHost: a\r\n\r\n",
          "GET * HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nX: \xff\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
          "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n",
          "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
        RawClient client(test.path);
        ASSERT_TRUE(client.send(text));
        SCOPED_TRACE(text);
        expect_problem(client.reply(), 400, "invalid_request");
    }
    EXPECT_EQ(test.client().send(get("/still"), 20s)->status, 200);
}

TEST(Limits, ARequestCutShortIs400) {
    TestServer const test;
    RawClient client(test.path);
    ASSERT_TRUE(client.send(post(10) + "abc"));
    client.half_close();
    expect_problem(client.reply(), 400, "invalid_request");
    EXPECT_TRUE(client.ended());
}

TEST(Limits, ASlowRequestIs408) {
    TestServer const test(echo, small());
    RawClient header(test.path);
    ASSERT_TRUE(header.send("GET / HTTP/1.1\r\nHost"));
    RawClient body(test.path);
    ASSERT_TRUE(body.send(post(10) + "abc"));
    expect_problem(header.reply(), 408, "timed_out");
    expect_problem(body.reply(), 408, "timed_out");
}

TEST(Limits, TricklingDoesNotExtendTheDeadline) {
    TestServer const test(echo, small());
    RawClient client(test.path);
    auto const start = std::chrono::steady_clock::now();
    ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: a\r\n"));
    int sent = 0;
    while (!client.readable_within(100ms) && std::chrono::steady_clock::now() < start + 15s) {
        client.send("X: y\r\n");
        ++sent;
    }
    expect_problem(client.reply(), 408, "timed_out");
    EXPECT_GE(sent, 3);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
}

// Another request holds the io thread until the deadline is over. Urgent data wakes the thread that
// checks for the connection's end, and the read that ended with it has its callback pending when
// the deadline cancels what waits.
TEST(Limits, ADeadlineThatComesBetweenTwoReadsIs408) {
    Counter held;
    std::promise<void> go_on;
    TestServer const test(
        [&](Request request, Respond respond) {
            if (request.path == "/hold") {
                held.add();
                go_on.get_future().wait();
            }
            echo(std::move(request), std::move(respond));
        },
        small());
    RawClient slow(test.path);
    ASSERT_TRUE(slow.send(post(900)));
    RawClient other(test.path);
    ASSERT_TRUE(other.send("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(held.reaches(1));
    ASSERT_TRUE(slow.send(std::string(100, 'a')));
    ASSERT_TRUE(slow.send("b", MSG_OOB)) << "CONFIG_AF_UNIX_OOB";
    EXPECT_FALSE(slow.readable_within(small().read_seconds_max));  // the answering handler is held
    go_on.set_value();
    expect_problem(slow.reply(), 408, "timed_out");
}

TEST(Limits, SilentAndIdleConnectionsEnd) {
    TestServer const test(echo, small());
    RawClient silent(test.path);
    RawClient idle(test.path);
    ASSERT_TRUE(idle.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(idle.reply());
    EXPECT_TRUE(silent.ended());
    EXPECT_TRUE(idle.ended());
}

TEST(Limits, NoAnswerInTimeIs504AndALateOneIsDropped) {
    std::mutex mutex;
    std::vector<Respond> kept;
    TestServer const test(
        [&](Request request, Respond respond) {
            if (request.path != "/keep") return echo(std::move(request), std::move(respond));
            std::lock_guard const lock(mutex);
            kept.push_back(std::move(respond));
        },
        small());
    RawClient client(test.path);
    ASSERT_TRUE(client.send("GET /keep HTTP/1.1\r\nHost: a\r\n\r\n"));
    expect_problem(client.reply(), 504, "timed_out");
    kept.front()({.status = 200, .headers = {}, .body = "late"});
    client.half_close();
    EXPECT_TRUE(client.ended());
}

TEST(Limits, AClientThatTakesNoAnswerIsCut) {
    Counter called;
    TestServer const test(
        [&](Request, Respond respond) {
            respond({.status = 200, .headers = {}, .body = std::string(16 * 1024 * 1024, 'a')});
            called.add();
        },
        small());
    RawClient client(test.path);
    ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(called.reaches(1));
    EXPECT_TRUE(client.hung_up_within(15s));
    EXPECT_LT(client.everything().size(), 16u * 1024 * 1024);
}

TEST(Limits, ConnectionsOfOnePeerAreCounted) {
    std::mutex mutex;
    std::vector<Respond> kept;
    Counter parked;
    TestServer const test(
        [&](Request request, Respond respond) {
            if (request.path != "/keep") return echo(std::move(request), std::move(respond));
            std::lock_guard const lock(mutex);
            kept.push_back(std::move(respond));
            parked.add();
        },
        small());
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 3; ++i) {
        clients.push_back(std::make_unique<RawClient>(test.path));
        ASSERT_TRUE(clients.back()->send("GET /keep HTTP/1.1\r\nHost: a\r\n\r\n"));
    }
    ASSERT_TRUE(parked.reaches(3));
    RawClient refused(test.path);
    auto const reply = refused.reply();
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 503);
    EXPECT_EQ(nlohmann::json::parse(reply->body)["code"], "unavailable");
    EXPECT_TRUE(refused.ended());
    // A place is free when a connection has ended: the server notices it before the next
    // connection, since one thread gets both in order.
    clients.front()->close();
    EXPECT_EQ(test.client().send(get("/"), 20s)->status, 200);
}

TEST(Limits, AnIdleConnectionGivesItsPlaceToANewOne) {
    TestServer const test(echo, small());
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 3; ++i) {
        clients.push_back(std::make_unique<RawClient>(test.path));
        ASSERT_TRUE(clients.back()->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        ASSERT_EQ(clients.back()->reply()->status, 200);
    }
    EXPECT_EQ(test.client().send(get("/"), 20s)->status, 200);
    auto const told = clients.front()->reply();
    ASSERT_TRUE(told);
    EXPECT_EQ(told->status, 503);
    EXPECT_NE(told->body.find("to make room for one that waited"), std::string::npos);
    EXPECT_TRUE(clients.front()->ended());
    ASSERT_TRUE(clients.back()->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_EQ(clients.back()->reply()->status, 200) << "only the oldest goes";
}

TEST(Limits, AWaitingClientThatLeavesGivesItsPlaceBack) {
    std::mutex mutex;
    std::vector<Respond> kept;
    Counter called;
    auto limits = small();
    limits.answer_seconds_max = 60s;
    limits.connections_per_peer_max = 1;
    TestServer const test(
        [&](Request request, Respond respond) {
            if (request.path != "/keep") return echo(std::move(request), std::move(respond));
            std::lock_guard const lock(mutex);
            kept.push_back(std::move(respond));
            called.add();
        },
        limits);
    RawClient waiting(test.path);
    ASSERT_TRUE(waiting.send("GET /keep HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(called.reaches(1));
    EXPECT_EQ(test.client().send(get("/"), 20s)->status, 503);
    waiting.close();
    EXPECT_EQ(test.client().send(get("/"), 20s)->status, 200);
}

TEST(Limits, AnAnswerIsHeldBackAsLongAsItSays) {
    TestServer const test([](Request request, Respond respond) {
        Response response;
        response.body = request.path;
        if (request.path == "/held") response.hold = 300ms;
        respond(std::move(response));
    });
    auto const begin = std::chrono::steady_clock::now();
    RawClient held(test.path);
    ASSERT_TRUE(held.send("GET /held HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_EQ(test.client().send(get("/other"), 20s)->body, "/other");
    EXPECT_FALSE(held.readable_within(0ms)) << "the others don't wait for it";
    EXPECT_EQ(held.reply()->body, "/held");
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 300ms);
    ASSERT_TRUE(held.send("GET /again HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_EQ(held.reply()->body, "/again");
}

TEST(Limits, AHandlerSeesThatItsClientIsGone) {
    std::shared_ptr<Presence> presence;
    Counter called;
    TestServer const test([&](Request request, Respond) {
        if (!presence) presence = request.presence;
        called.add();
    });
    RawClient waiting(test.path);
    ASSERT_TRUE(waiting.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(called.reaches(1));
    waiting.close();
    RawClient other(test.path);  // its request is read after that end
    ASSERT_TRUE(other.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(called.reaches(2));
    EXPECT_TRUE(presence->gone);
}

TEST(Limits, ManyConnectionsAtOnceAreAllAnsweredOrRefused) {
    auto limits = small();
    limits.connections_max = 4;
    limits.connections_per_peer_max = 100;
    TestServer const test(echo, limits);
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 40; ++i) clients.push_back(std::make_unique<RawClient>(test.path));
    // When the last is answered, all before it have come; the first ones have made room for others.
    ASSERT_TRUE(clients.back()->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_EQ(clients.back()->reply()->status, 200);
    int answered = 0;
    int refused = 0;
    for (auto& client : clients) {
        client->send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        auto const reply = client->reply();
        if (reply && reply->status == 200) ++answered;
        if (reply && reply->status == 503) ++refused;
    }
    EXPECT_EQ(answered, 4);
    EXPECT_EQ(refused, 36);
}

}  // namespace
}  // namespace vfmgr::http
