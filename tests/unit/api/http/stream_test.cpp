// SPDX-License-Identifier: Apache-2.0
// Answers that go on: what a reader gets, and when one has gone.
#include <future>

#include "tests/unit/api/http/harness.hpp"
#include "tests/unit/free_port.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;

Frame frame(std::string text) {
    return std::make_shared<std::string const>(std::move(text));
}

// What one stream has to send. Used on the io thread, except where a test waits.
struct Source {
    std::vector<Frame> frames;
    bool ended = false;
    std::function<void()> wake;
    Counter asked;
    std::promise<void> begun;
    std::promise<void> gone;
};

// Answers each GET with a stream from the source of its path; the stream's end is reported to it.
class Streams {
  public:
    std::shared_ptr<Source> const a = std::make_shared<Source>();
    std::chrono::milliseconds heartbeat{1h};
    std::function<std::optional<std::vector<Frame>>(Source&, Stream::Due)> next = take;

    Handler handler() {
        return [this](Request request, Respond const& respond) {
            if (request.path != "/a") return echo(std::move(request), respond);
            Response response;
            response.content_type = "text/event-stream";
            response.stream = stream();
            respond(std::move(response));
        };
    }
    static std::optional<std::vector<Frame>> take(Source& source, Stream::Due due) {
        if (due == Stream::Due::beat) return std::vector{frame("beat;")};
        if (source.ended && source.frames.empty()) return std::nullopt;
        return std::exchange(source.frames, {});
    }

  private:
    std::shared_ptr<Stream const> stream() {
        auto const stream = std::make_shared<Stream>();
        auto const source = a;
        std::shared_ptr<void> const held(nullptr, [source](void*) {
            source->wake = nullptr;
            source->gone.set_value();
        });
        stream->heartbeat = heartbeat;
        stream->next = [this, source, held](Stream::Due due) {
            source->asked.add();
            return next(*source, due);
        };
        stream->begin = [source](std::function<void()> wake) {
            source->wake = std::move(wake);
            source->begun.set_value();
        };
        return stream;
    }
};

void give(Server const& server, Source& source, std::string text) {
    server.io_post()([&source, text = std::move(text)] {
        source.frames.push_back(frame(text));
        if (source.wake) source.wake();
    });
}

void end(Server const& server, Source& source) {
    server.io_post()([&source] {
        source.ended = true;
        if (source.wake) source.wake();
    });
}

bool is_ready(std::future<void> const& future) {
    return future.wait_for(20s) == std::future_status::ready;
}

std::string get_a(std::string const& method = "GET") {
    return method + " /a HTTP/1.1\r\nHost: a\r\n\r\n";
}

TEST(Streams, AReaderGetsEachPartAsItComesAndTheEnd) {
    Streams streams;
    TestServer test(streams.handler());
    RawClient client(test.path);
    ASSERT_TRUE(client.send(get_a()));
    ASSERT_TRUE(is_ready(streams.a->begun.get_future()));
    give(test.server, *streams.a, "one;");
    ASSERT_TRUE(client.readable_within(20s));
    give(test.server, *streams.a, "a second;");
    end(test.server, *streams.a);
    auto const all = client.everything();
    for (auto const* line : {"HTTP/1.1 200 OK\r\n", "Transfer-Encoding: chunked\r\n",
                             "Content-Type: text/event-stream\r\n", "Cache-Control: no-store\r\n",
                             "Connection: close\r\n", "X-Request-Id: "})
        EXPECT_NE(all.find(line), std::string::npos) << line;
    EXPECT_EQ(all.find("Content-Length"), std::string::npos);
    EXPECT_TRUE(all.ends_with("\r\n\r\n4\r\none;\r\n9\r\na second;\r\n0\r\n\r\n")) << all;
    EXPECT_TRUE(is_ready(streams.a->gone.get_future()));
}

TEST(Streams, SeveralFramesAreOnePart) {
    Streams streams;
    streams.a->frames = {frame("one;"), frame("two;")};
    TestServer test(streams.handler());
    RawClient client(test.path);
    ASSERT_TRUE(client.send(get_a()));
    ASSERT_TRUE(client.readable_within(20s));
    end(test.server, *streams.a);
    EXPECT_TRUE(client.everything().ends_with("\r\n\r\n8\r\none;two;\r\n0\r\n\r\n"));
}

TEST(Streams, AnOldClientReadsUntilTheConnectionEnds) {
    Streams streams;
    streams.a->frames = {frame("one;")};
    TestServer test(streams.handler());
    RawClient client(test.path);
    ASSERT_TRUE(client.send("GET /a HTTP/1.0\r\n\r\n"));
    ASSERT_TRUE(client.readable_within(20s));
    end(test.server, *streams.a);
    auto const all = client.everything();
    EXPECT_TRUE(all.starts_with("HTTP/1.0 200 OK\r\n")) << all;
    EXPECT_EQ(all.find("Transfer-Encoding"), std::string::npos);
    EXPECT_TRUE(all.ends_with("\r\n\r\none;")) << all;
}

TEST(Streams, AHeadHasNoBodyAndKeepsTheConnection) {
    Streams streams;
    TestServer const test(streams.handler());
    RawClient client(test.path);
    ASSERT_TRUE(client.send(get_a("HEAD") + "GET /b HTTP/1.1\r\nHost: a\r\n\r\n"));
    auto const head = client.reply();
    ASSERT_TRUE(head);
    EXPECT_EQ(head->status, 200);
    EXPECT_NE(head->head.find("Content-Type: text/event-stream"), std::string::npos);
    EXPECT_EQ(client.reply()->body, "GET /b");
    EXPECT_TRUE(is_ready(streams.a->gone.get_future()));
    EXPECT_EQ(streams.a->asked.count(), 0) << "nobody reads";
}

TEST(Streams, AHeartbeatComesWhenNothingElseDoes) {
    Streams streams;
    streams.heartbeat = 1ms;
    TestServer test(streams.handler());
    RawClient client(test.path);
    ASSERT_TRUE(client.send(get_a()));
    EXPECT_TRUE(streams.a->asked.reaches(4));
    end(test.server, *streams.a);
    EXPECT_NE(client.everything().find("5\r\nbeat;\r\n5\r\nbeat;\r\n"), std::string::npos);
}

// A reader is woken for events that are not for it: its connection must not fall silent.
TEST(Streams, WhatIsNotForAReaderPutsNoHeartbeatOff) {
    Streams streams;
    streams.heartbeat = 20ms;
    std::atomic<bool> beat = false;
    streams.next = [&](Source&, Stream::Due due) {
        if (due == Stream::Due::beat) beat = true;
        return std::vector<Frame>{};
    };
    TestServer test(streams.handler());
    RawClient client(test.path);
    ASSERT_TRUE(client.send(get_a()));
    ASSERT_TRUE(is_ready(streams.a->begun.get_future()));
    auto const until = std::chrono::steady_clock::now() + 20s;
    while (!beat && std::chrono::steady_clock::now() < until)
        give(test.server, *streams.a, "not for you");
    EXPECT_TRUE(beat);
}

TEST(Streams, AReaderThatLeavesEndsItsStream) {
    for (bool const half : {false, true}) {
        Streams streams;
        TestServer const test(streams.handler());
        RawClient client(test.path);
        ASSERT_TRUE(client.send(get_a()));
        ASSERT_TRUE(is_ready(streams.a->begun.get_future()));
        if (half)
            client.half_close();
        else
            client.close();
        EXPECT_TRUE(is_ready(streams.a->gone.get_future())) << half;
    }
}

TEST(Streams, AReaderThatTakesNothingHoldsOnePartAndIsCut) {
    Streams streams;
    auto const part = frame(std::string(1 << 20, 'x'));
    streams.next = [&](Source&, Stream::Due) { return std::vector{part}; };
    Limits limits;
    limits.read_seconds_max = 1s;
    TestServer const test(streams.handler(), limits);
    RawClient client(test.path);
    ASSERT_TRUE(client.send(get_a()));
    ASSERT_TRUE(is_ready(streams.a->gone.get_future()));
    EXPECT_EQ(streams.a->asked.count(), 1) << "the socket takes less than a part";
}

TEST(Streams, TakeNoPlaceOfOtherRequests) {
    Limits limits;
    limits.connections_max = 2;
    limits.connections_per_peer_max = 2;
    std::vector<std::unique_ptr<Streams>> all;
    std::vector<std::unique_ptr<RawClient>> readers;
    Counter begun;
    std::vector<Handler> handlers;
    for (int i = 0; i < 5; ++i) {
        all.push_back(std::make_unique<Streams>());
        handlers.push_back(all.back()->handler());
    }
    std::size_t next = 0;
    TestServer const test(
        [&](Request request, Respond respond) {
            if (request.path != "/a") return echo(std::move(request), std::move(respond));
            handlers.at(next++)(std::move(request), std::move(respond));
        },
        limits);
    for (auto const& one : all) {
        readers.push_back(std::make_unique<RawClient>(test.path));
        ASSERT_TRUE(readers.back()->send(get_a()));
        ASSERT_TRUE(is_ready(one->a->begun.get_future()));
    }
    for (int i = 0; i < 3; ++i) EXPECT_EQ(test.client().send(get("/b"), 20s)->status, 200);
    for (auto const& one : all) EXPECT_TRUE(one->a->wake) << "none made room";
}

TEST(Streams, AreCutWhenTheirReaderMayNoLongerRead) {
    Streams streams;
    streams.a->frames = {frame("one;")};
    std::atomic<bool> may = true;
    TestServer test([&, streamed = streams.handler()](Request request, Respond respond) {
        ASSERT_TRUE(make_known(request, {"a", [&may] { return may.load(); }}));
        streamed(std::move(request), std::move(respond));
    });
    RawClient client(test.path);
    ASSERT_TRUE(client.send(get_a()));
    ASSERT_TRUE(streams.a->asked.reaches(2)) << "it has sent the first part";
    test.server.cut(lapsed);
    give(test.server, *streams.a, "two;");
    ASSERT_TRUE(streams.a->asked.reaches(4)) << "it is still there";
    may = false;
    test.server.cut(lapsed);
    auto const gone = streams.a->gone.get_future();
    ASSERT_TRUE(is_ready(gone));
    EXPECT_TRUE(client.everything().ends_with("4\r\ntwo;\r\n")) << "and no end";
}

TEST(Streams, EndWholeWhenTheServerStops) {
    Streams streams;
    streams.a->frames = {frame("one;")};
    TestServer test(streams.handler());
    RawClient client(test.path);
    ASSERT_TRUE(client.send(get_a()));
    ASSERT_TRUE(client.readable_within(20s));
    auto const before = std::chrono::steady_clock::now();
    test.server.finish(20s);
    EXPECT_LT(std::chrono::steady_clock::now() - before, 15s) << "it waits for no stream's end";
    EXPECT_TRUE(client.everything().ends_with("4\r\none;\r\n0\r\n\r\n"));
}

TEST(Streams, AnExceptionEndsNoOtherConnection) {
    Streams streams;
    streams.next = [](Source&, Stream::Due) -> std::optional<std::vector<Frame>> {
        throw std::runtime_error("a bug");
    };
    Counter bugs;
    Limits limits;
    limits.read_seconds_max = 1s;
    TestServer const test(streams.handler(), limits, [&](std::string const&) { bugs.add(); });
    RawClient client(test.path);
    ASSERT_TRUE(client.send(get_a()));
    EXPECT_TRUE(bugs.reaches(1));
    EXPECT_EQ(test.client().send(get("/b"), 20s)->status, 200);
    EXPECT_TRUE(is_ready(streams.a->gone.get_future())) << "at its deadline";
}

TEST(Streams, AClientFollows) {
    Streams streams;
    TestServer test(streams.handler());
    std::string came;
    give(test.server, *streams.a, "one;");
    auto const ended = test.client().follow(get("/a"), 20s, [&](std::string_view part) {
        came += part;
        if (came == "one;") give(test.server, *streams.a, "two;");
        if (came == "one;two;") end(test.server, *streams.a);
        return true;
    });
    ASSERT_TRUE(ended) << ended.error().detail;
    EXPECT_EQ(came, "one;two;");
    EXPECT_EQ(ended->status, 200);
    EXPECT_EQ(ended->content_type, "text/event-stream");
    EXPECT_EQ(ended->body, "");
}

TEST(Streams, GoOverTls) {
    auto const text = frame(std::string(100'000, 'x'));
    Streams streams;
    streams.next = [&, left = 3](Source&, Stream::Due) mutable {
        return left-- > 0 ? std::optional(std::vector{text, text}) : std::nullopt;
    };
    Folder const folder;
    TlsListen const where{"127.0.0.1", test::free_port(), folder.file("crt"), folder.file("key")};
    ASSERT_TRUE(make_self_signed(where.certificate_file, where.key_file, {"127.0.0.1"}));
    Server server{Limits{}};
    ASSERT_TRUE(server.listen(where, streams.handler()));
    server.start();
    std::size_t came = 0;
    TlsTarget const target{where.address, where.port, where.certificate_file, {}};
    auto const ended = Client(target).follow(get("/a"), 20s, [&](std::string_view part) {
        came += part.size();
        return true;
    });
    ASSERT_TRUE(ended) << ended.error().detail;
    EXPECT_EQ(came, 6 * text->size());
}

TEST(Streams, AClientStopsWhenItHasEnough) {
    Streams streams;
    streams.a->frames = {frame("one;")};
    TestServer const test(streams.handler());
    EXPECT_TRUE(test.client().follow(get("/a"), 20s, [](std::string_view) { return false; }));
    EXPECT_TRUE(is_ready(streams.a->gone.get_future()));
}

TEST(Streams, AClientNoticesSilenceAndABrokenConnection) {
    Streams streams;
    auto test = std::make_unique<TestServer>(streams.handler());
    auto const take = [](std::string_view) { return true; };
    auto const silent = test->client().follow(get("/a"), 1s, take);
    ASSERT_FALSE(silent);
    EXPECT_EQ(silent.error().problem, Problem::timed_out);
    EXPECT_NE(silent.error().detail.find("sent nothing for 1 s"), std::string::npos);
    ASSERT_TRUE(is_ready(streams.a->gone.get_future()));

    Streams others;
    test = std::make_unique<TestServer>(others.handler());
    others.a->frames = {frame("one;")};
    auto const broken = test->client().follow(get("/a"), 20s, [&](std::string_view) {
        test->server.stop();
        return true;
    });
    ASSERT_FALSE(broken);
    EXPECT_EQ(broken.error().problem, Problem::unavailable);
}

TEST(Streams, AClientGetsARefusalWhole) {
    TestServer const test([](Request const& request, Respond const& respond) {
        respond(problem_response({Problem::forbidden, "not you", "ask"}, request));
    });
    bool taken = false;
    auto const refused =
        test.client().follow(get("/a"), 20s, [&](std::string_view) { return taken = true; });
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->status, 403);
    EXPECT_NE(refused->body.find("not you"), std::string::npos);
    EXPECT_FALSE(taken);
}

}  // namespace
}  // namespace vfmgr::http
