// SPDX-License-Identifier: Apache-2.0
// Streams that a pool follows.
#include <gmock/gmock.h>

#include <thread>

#include "tests/unit/api/http/pool_harness.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// A server whose one stream sends what the test gives it.
struct SentStream {
    [[nodiscard]] Handler handler() {
        return [this](Request request, Respond respond) {
            if (request.path != "/stream") return echo(std::move(request), respond);
            auto stream = std::make_shared<Stream>();
            Held const reader = held([this] { gone.add(); });
            stream->heartbeat = heartbeat;
            stream->next = [this, reader](Stream::Due due) { return next(due); };
            stream->begin = [this](std::function<void()> wake) {
                woken = std::move(wake);
                begun.add();
            };
            Response response;
            response.content_type = "text/event-stream";
            response.headers["X-Kind"] = "events";
            response.stream = std::move(stream);
            respond(std::move(response));
        };
    }
    std::optional<std::vector<Frame>> next(Stream::Due due) {
        if (due == Stream::Due::beat && silent) return std::vector<Frame>{};
        if (due == Stream::Due::beat)
            return std::vector<Frame>{std::make_shared<std::string const>("beat;")};
        if (endless) {
            sent_bytes += endless->size();
            return std::vector{endless};
        }
        if (frames.empty() && ended) return std::nullopt;
        return std::exchange(frames, {});
    }
    void give(Server const& server, std::string text) {
        server.io_post()([this, text = std::move(text)] {
            frames.push_back(std::make_shared<std::string const>(text));
            if (woken) woken();
        });
    }
    void end(Server const& server) {
        server.io_post()([this] {
            ended = true;
            if (woken) woken();
        });
    }

    std::chrono::milliseconds heartbeat{1h};
    std::atomic<bool> silent = false;
    Frame endless{};  // sent again and again
    std::atomic<std::size_t> sent_bytes = 0;
    Counter begun;
    Counter gone;
    std::vector<Frame> frames;  // the server's thread only, as the next
    bool ended = false;
    std::function<void()> woken;
};

// What came of a stream, for a test that waits.
struct Heard {
    [[nodiscard]] StreamCalls calls() {
        return {.take =
                    [this](std::string_view part) {
                        std::lock_guard const lock(mutex);
                        text += part;
                        changed.notify_all();
                    },
                .ended =
                    [this](Result<Response> how) {
                        std::lock_guard const lock(mutex);
                        end = std::move(how);
                        changed.notify_all();
                    },
                .begun =
                    [this](Response first) {
                        std::lock_guard const lock(mutex);
                        header = std::move(first);
                    }};
    }
    [[nodiscard]] bool hears(std::string const& expected) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, 20s, [&] { return text.find(expected) != text.npos; });
    }
    [[nodiscard]] std::string how_it_ended() {
        std::unique_lock lock(mutex);
        if (!changed.wait_for(lock, 20s, [&] { return end.has_value(); })) return "goes on";
        return outcome(*end);
    }
    std::mutex mutex;
    std::condition_variable changed;
    std::string text;
    std::optional<Response> header;
    std::optional<Result<Response>> end;
};

struct AStream : testing::Test {
    [[nodiscard]] Followed follow(std::chrono::seconds silence_max = 20s,
                                  std::string const& path = "/stream") {
        return pool.follow(servers.targets[0], get(path), silence_max, heard.calls());
    }
    [[nodiscard]] bool none_is_left() {
        return counts_become(pool, [](auto const& now) { return now.streams == 0; });
    }
    SentStream sent;
    Heard heard;
    ManyServers servers{1, sent.handler()};
    ClientPool pool{{.connections_per_target_max = 1}};
};

TEST_F(AStream, IsTakenAsItComesUntilTheServerEndsIt) {
    auto const followed = follow();
    ASSERT_TRUE(sent.begun.reaches(1));
    sent.give(servers.server, "one;");
    EXPECT_TRUE(heard.hears("one;"));
    EXPECT_EQ(heard.header->status, 200);
    EXPECT_EQ(heard.header->headers.at("x-kind"), "events");
    EXPECT_EQ(heard.header->content_type, "text/event-stream");
    EXPECT_EQ(outcome(pool.send(servers.targets[0], get("/a"), 20s)), "200 GET /a")
        << "its connection is none of the target's";
    sent.give(servers.server, "two;");
    sent.end(servers.server);
    EXPECT_EQ(heard.how_it_ended(), "200 ");
    EXPECT_EQ(heard.text, "one;two;");
    EXPECT_TRUE(none_is_left());
}

TEST_F(AStream, WhoseServerAnswersOtherwiseIsThatAnswer) {
    auto const followed = follow(20s, "/other");
    EXPECT_TRUE(heard.hears("GET /other")) << "a 2xx is a stream";
    EXPECT_EQ(heard.how_it_ended(), "200 ");
    Heard refused;
    ManyServers const other(1, [](Request, Respond respond) {
        respond(problem_response({Problem::not_found, "there is none", "look elsewhere"}, "", ""));
    });
    auto const none = pool.follow(other.targets[0], get("/"), 20s, refused.calls());
    EXPECT_THAT(refused.how_it_ended(), HasSubstr("there is none"));
    EXPECT_FALSE(refused.header);
    EXPECT_EQ(refused.text, "");
}

TEST_F(AStream, IsHeldUpByHeartbeatsAndEndsInSilence) {
    sent.heartbeat = 300ms;
    auto const followed = follow(1s);
    ASSERT_TRUE(heard.hears("beat;beat;beat;beat;beat;"))
        << "longer than the silence that it may keep";
    sent.silent = true;
    EXPECT_EQ(heard.how_it_ended(),
              "timed_out: https://127.0.0.1:" + std::to_string(servers.targets[0].port) +
                  " sent nothing for 1 s");
    EXPECT_TRUE(sent.gone.reaches(1));
}

TEST_F(AStream, BreaksOffWithItsServer) {
    auto const followed = follow();
    ASSERT_TRUE(sent.begun.reaches(1));
    servers.server.stop();
    EXPECT_THAT(heard.how_it_ended(), HasSubstr("ended the connection during a stream"));
}

TEST_F(AStream, EndsWithItsHandleAndThenCallsNothing) {
    std::optional<Followed> followed = follow();
    ASSERT_TRUE(sent.begun.reaches(1));
    sent.give(servers.server, "one;");
    ASSERT_TRUE(heard.hears("one;"));
    followed.reset();
    EXPECT_TRUE(sent.gone.reaches(1));
    EXPECT_TRUE(none_is_left());
    EXPECT_FALSE(heard.end);
}

TEST_F(AStream, MayBeEndedByItsOwnCallback) {
    std::optional<Followed> followed;
    std::mutex assigned;
    Counter took;
    auto calls = heard.calls();
    calls.take = [&](std::string_view) {
        std::lock_guard const lock(assigned);
        followed.reset();
        took.add();
    };
    {
        std::lock_guard const lock(assigned);
        followed = pool.follow(servers.targets[0], get("/stream"), 20s, std::move(calls));
    }
    ASSERT_TRUE(sent.begun.reaches(1));
    sent.give(servers.server, "one;");
    ASSERT_TRUE(took.reaches(1));
    EXPECT_TRUE(sent.gone.reaches(1));
}

// The callback's end is waited for, so what it uses may go after the handle.
TEST_F(AStream, ItsHandleWaitsForACallbackThatRuns) {
    Counter entered;
    Counter may_leave;
    std::atomic<bool> left = false;
    auto calls = heard.calls();
    calls.take = [&](std::string_view) {
        entered.add();
        EXPECT_TRUE(may_leave.reaches(1));
        left = true;
    };
    auto followed =
        std::make_optional(pool.follow(servers.targets[0], get("/stream"), 20s, std::move(calls)));
    ASSERT_TRUE(sent.begun.reaches(1));
    sent.give(servers.server, "one;");
    ASSERT_TRUE(entered.reaches(1));
    Counter ending;
    std::thread ends([&] {
        ending.add();
        followed.reset();
        EXPECT_TRUE(left);
    });
    EXPECT_TRUE(ending.reaches(1));
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    may_leave.add();
    ends.join();
}

// A reader that pauses stops the server, which has sent no more than the kernel holds.
TEST_F(AStream, ThatIsPausedIsNotRead) {
    sent.endless = std::make_shared<std::string const>(64 * 1024, 'x');
    std::optional<Followed> followed;
    std::mutex assigned;
    Counter paused;
    std::atomic<std::size_t> taken = 0;
    auto calls = heard.calls();
    calls.take = [&](std::string_view part) {
        std::lock_guard const lock(assigned);
        taken += part.size();
        if (taken < 1'000'000) return;
        followed->pause();
        paused.add();
    };
    {
        std::lock_guard const lock(assigned);
        followed = pool.follow(servers.targets[0], get("/stream"), 1s, std::move(calls));
    }
    ASSERT_TRUE(paused.reaches(1));
    auto const paused_at = taken.load();
    auto const stopped_at = settled(
        sent.sent_bytes, [&] { return pool.send(servers.targets[0], get("/a"), 20s).has_value(); });
    EXPECT_EQ(taken, paused_at);
    EXPECT_LT(stopped_at, paused_at + 32 * 1024 * 1024) << "what the kernel's buffers take";
    for (int parts = 2; parts < 10'000 && sent.sent_bytes == stopped_at; ++parts) {
        followed->resume();
        ASSERT_TRUE(paused.reaches(parts));
    }
    EXPECT_GT(sent.sent_bytes, stopped_at);
    EXPECT_FALSE(heard.end) << "a stream that is not read is not silent";
}

TEST_F(AStream, EndsWhenThePoolStopsAndItsHandleMayOutliveIt) {
    auto other = std::make_unique<ClientPool>();
    auto const followed = other->follow(servers.targets[0], get("/stream"), 20s, heard.calls());
    ASSERT_TRUE(sent.begun.reaches(1));
    other->stop();
    EXPECT_THAT(heard.how_it_ended(), HasSubstr("because this program stops"));
    Heard late;
    auto const nothing = other->follow(servers.targets[0], get("/stream"), 20s, late.calls());
    other.reset();
    followed.pause();
    followed.resume();
    EXPECT_FALSE(late.end);
}

TEST(FollowedStreams, AreOfALimitedNumber) {
    SentStream sent;
    ManyServers servers(1, sent.handler());
    ClientPool pool({.streams_max = 2});
    Heard heard;
    std::vector<Followed> followed;
    for (int i = 0; i < 2; ++i)
        followed.push_back(pool.follow(servers.targets[0], get("/stream"), 20s, heard.calls()));
    ASSERT_TRUE(sent.begun.reaches(2));
    Heard third;
    auto const refused = pool.follow(servers.targets[0], get("/stream"), 20s, third.calls());
    EXPECT_THAT(third.how_it_ended(), HasSubstr("2 streams are followed already"));
    auto wrong = get("/stream");
    wrong.headers["x"] = "a\nb";
    Heard fourth;
    auto const invalid = pool.follow(servers.targets[0], wrong, 20s, fourth.calls());
    EXPECT_THAT(fourth.how_it_ended(), HasSubstr("invalid_request"));
}

}  // namespace
}  // namespace vfmgr::http
