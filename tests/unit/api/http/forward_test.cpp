// SPDX-License-Identifier: Apache-2.0
#include "api/http/forward.hpp"

#include <gmock/gmock.h>

#include "tests/unit/api/http/pool_harness.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST(Forwarded, TheRequestsOwnHeadersGoOnAndNoOther) {
    Request received = make_request("PATCH", "/v1/hosts/a/pfs/x");
    received.query = {{"dry_run", "true"}};
    received.body = "{}";
    std::map<std::string, std::string> const own{{"accept", "application/json"},
                                                 {"accept-encoding", "gzip"},
                                                 {"content-type", "application/merge-patch+json"},
                                                 {"idempotency-key", "k"},
                                                 {"if-match", "\"3\""},
                                                 {"if-none-match", "\"4\""},
                                                 {"last-event-id", "7"},
                                                 {"x-request-id", "r"}};
    received.headers = own;
    for (auto const* dropped :
         {"authorization", "cookie", "connection", "host", "keep-alive", "te", "trailer",
          "transfer-encoding", "upgrade", "content-length", "expect", "proxy-authorization",
          "vfmgr-on-behalf-of", "vfmgr-fence", "origin", "x-forwarded-for", "x-unknown"})
        received.headers[dropped] = "v";
    received.peer = UnixPeer{.uid = 7};
    received.presence = std::make_shared<Presence>();
    auto const sent = forwarded(received, "/v1/pfs/x");
    EXPECT_EQ(sent.method, "PATCH");
    EXPECT_EQ(sent.path, "/v1/pfs/x");
    EXPECT_EQ(sent.query, received.query);
    EXPECT_EQ(sent.body, "{}");
    EXPECT_EQ(sent.headers, own);
    EXPECT_FALSE(sent.presence);
}

TEST(Forwarded, TheAnswersOwnHeadersComeBackAndNoOther) {
    Response answer;
    answer.status = 202;
    answer.body = "body";
    answer.content_type = "application/problem+json";
    answer.headers = {{"etag", "\"3\""},
                      {"location", "/v1/operations/7"},
                      {"retry-after", "5"},
                      {"plan-digest", "d"},
                      {"content-encoding", "gzip"},
                      {"vary", "Accept-Encoding"},
                      {"allow", "GET"},
                      {"connection", "Keep-Alive, X-Hop"},
                      {"x-hop", "h"},
                      {"keep-alive", "5"},
                      {"transfer-encoding", "chunked"},
                      {"content-length", "4"},
                      {"content-type", "application/problem+json"},
                      {"set-cookie", "c"},
                      {"www-authenticate", "Bearer"},
                      {"x-request-id", "r"}};
    auto const given = forwarded_answer(answer, "/v1/hosts/a");
    EXPECT_EQ(given.status, 202);
    EXPECT_EQ(given.body, "body");
    EXPECT_EQ(given.content_type, "application/problem+json");
    EXPECT_THAT(given.headers,
                UnorderedElementsAre(Pair("etag", "\"3\""), Pair("retry-after", "5"),
                                     Pair("location", "/v1/hosts/a/operations/7"),
                                     Pair("plan-digest", "d"), Pair("content-encoding", "gzip"),
                                     Pair("vary", "Accept-Encoding"), Pair("allow", "GET")));
    EXPECT_EQ(forwarded_answer(answer).headers.at("location"), "/v1/operations/7");
    answer.headers["location"] = "/v10/a";
    EXPECT_EQ(forwarded_answer(answer, "/v1/hosts/a").headers.at("location"), "/v10/a");
}

// A server that passes everything on to another.
struct Between : testing::Test {
    Between() {
        handler = [this](Request request, Respond respond) {
            EXPECT_TRUE(make_known(request, {"client"}));
            forward_stream(pool,
                           {.target = behind.targets[0],
                            .request = forwarded(request, request.path),
                            .received_path = request.path,
                            .below = "/v1/hosts/a",
                            .silence_max = 20s,
                            .post = front.server.io_post()},
                           std::move(respond));
        };
    }
    std::string next_part() {
        std::lock_guard const lock(mutex);
        return part;
    }
    // The stream behind: `part` again and again, until `last`.
    void answer(Request request, Respond respond) {
        if (request.path != "/stream") {
            Response response;
            response.status = 404;
            response.headers["Location"] = "/v1/b";
            response.body = request.path + " " + request.headers.at("x-request-id");
            return respond(std::move(response));
        }
        auto stream = std::make_shared<Stream>();
        Held const reader = held([this] { gone.add(); });
        stream->next = [this, reader](Stream::Due) -> std::optional<std::vector<Frame>> {
            if (last) return std::nullopt;
            sent_bytes += part.size();
            if (!endless) last = true;
            return std::vector{std::make_shared<std::string const>(next_part())};
        };
        stream->begin = [](auto const&) {};
        Response response;
        response.content_type = "text/event-stream";
        response.stream = std::move(stream);
        respond(std::move(response));
    }

    std::mutex mutex;
    std::string part = "id: 1\ndata: a\n\n";
    std::atomic<bool> endless = false;
    std::atomic<bool> last = false;
    std::atomic<std::size_t> sent_bytes = 0;
    Counter gone;
    Handler handler;
    ManyServers behind{1, [this](Request request, Respond respond) {
                           answer(std::move(request), std::move(respond));
                       }};
    ClientPool pool;
    TestServer front{[this](Request request, Respond respond) {
        handler(std::move(request), std::move(respond));
    }};
};

TEST_F(Between, AStreamPassesThroughToItsEnd) {
    std::string text;
    auto const answer = front.client().follow(get("/stream"), 20s, [&](std::string_view came) {
        text += came;
        return true;
    });
    EXPECT_EQ(outcome(answer), "200 ");
    EXPECT_EQ(answer->content_type, "text/event-stream");
    EXPECT_EQ(text, part);
    EXPECT_TRUE(gone.reaches(1));
}

TEST_F(Between, AnAnswerThatIsNoStreamPassesThrough) {
    auto request = get("/other");
    request.headers["x-request-id"] = "r7";
    auto const answer = front.client().send(request, 20s);
    EXPECT_EQ(outcome(answer), "404 /other r7");
    EXPECT_EQ(answer->headers.at("location"), "/v1/hosts/a/b");
    EXPECT_EQ(answer->headers.at("x-request-id"), "r7");
    behind.server.stop();
    auto const gone_answer = front.client().send(request, 20s);
    ASSERT_TRUE(gone_answer);
    EXPECT_EQ(gone_answer->status, 503);
    EXPECT_THAT(gone_answer->body, HasSubstr("can't connect to https://127.0.0.1:"));
    EXPECT_THAT(gone_answer->body, HasSubstr("\"/other\""));
}

TEST_F(Between, AReaderThatLeavesEndsTheStreamBehind) {
    endless = true;
    {
        RawClient client(front.path);
        ASSERT_TRUE(client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
        ASSERT_TRUE(client.readable_within(20s));
    }
    EXPECT_TRUE(gone.reaches(1));
    EXPECT_TRUE(counts_become(pool, [](auto const& now) { return now.streams == 0; }));
}

TEST_F(Between, ASlowReaderStopsTheServerBehind) {
    endless = true;
    part = std::string(256 * 1024, 'x');
    RawClient client(front.path);
    ASSERT_TRUE(client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(client.readable_within(20s));
    auto const stopped_at =
        settled(sent_bytes, [&] { return front.client().send(get("/other"), 20s).has_value(); });
    EXPECT_LT(stopped_at, 64U * 1024 * 1024) << "the kernel's buffers of three sockets";
    last = true;
    EXPECT_GE(client.everything().size(), stopped_at);
    EXPECT_TRUE(gone.reaches(1));
}

TEST_F(Between, AStreamThatBreaksOffEndsTheAnswer) {
    endless = true;
    RawClient client(front.path);
    ASSERT_TRUE(client.send("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(client.readable_within(20s));
    behind.server.stop();
    EXPECT_TRUE(client.everything().ends_with("0\r\n\r\n"));
}

TEST_F(Between, APoolThatHasStoppedLeavesNoClientWaiting) {
    pool.stop();
    auto const answer = front.client().send(get("/stream"), 20s);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 500);
}

}  // namespace
}  // namespace vfmgr::http
