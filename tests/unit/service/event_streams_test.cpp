// SPDX-License-Identifier: Apache-2.0
// All streams together: who may read, who gets a place, and what the store is asked for.
#include "service/event_streams.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <set>

namespace vfmgr {
namespace {

using Due = http::Stream::Due;

Event vm_started(std::uint64_t number) {
    Event one;
    one.number = number;
    one.kind = EventKind::vm_started;
    return one;
}

// A connection with a stream, as the transport has it.
struct Connected {
    std::shared_ptr<http::Stream const> stream;
    std::shared_ptr<int> woken = std::make_shared<int>(0);

    explicit Connected(http::Response response) : stream(std::move(response.stream)) {
        stream->begin([woken = woken] { ++*woken; });
    }
    // "ended", or what came.
    [[nodiscard]] std::string next(Due due = Due::more) const {
        auto const frames = stream->next(due);
        if (!frames) return "ended";
        std::string text;
        for (auto const& frame : *frames) text += *frame;
        return text;
    }
};

struct EventStreamsTest : testing::Test {
    std::deque<std::function<void()>> io;
    std::vector<std::uint64_t> read_after;
    std::vector<Query<EventPage>::Answer> answers;
    std::set<std::string> known{"uid:0", "token:a", "token:b"};
    EventStreamLimits limits{.streams_max = 3, .streams_per_peer_max = 3, .recent = {.events = 4}};
    EventStreams streams{
        limits,
        {[this](std::function<void()> work) { io.push_back(std::move(work)); },
         [this](std::uint64_t after, std::size_t) {
             read_after.push_back(after);
             return Query<EventPage>([this](Client const&, Query<EventPage>::Answer answer) {
                 answers.push_back(std::move(answer));
             });
         }}};

    EventStreamsTest() {
        EventPage latest;
        for (std::uint64_t number = 7; number <= 10; ++number)
            latest.events.push_back(vm_started(number));
        latest.last = 10;
        streams.begin(latest);
    }
    Result<http::Response> asked(std::string const& who, std::optional<std::uint64_t> after = {}) {
        Call call;
        call.who.name = who;
        call.request.presence = std::make_shared<http::Presence>();
        call.request.presence->known = {who, [this, who] { return known.contains(who); }};
        return streams.open(call, {}, after);
    }
    Connected open(std::string const& who, std::optional<std::uint64_t> after = {}) {
        auto response = asked(who, after);
        EXPECT_TRUE(response);
        EXPECT_EQ(response->content_type, "text/event-stream");
        return Connected(std::move(*response));
    }
    void run_io() {
        for (; !io.empty(); io.pop_front()) io.front()();
    }
};

TEST_F(EventStreamsTest, EachBatchIsOnePostAndWakesEachReaderOnce) {
    auto const one = open("uid:0");
    auto const other = open("token:a", 9);
    EXPECT_EQ(one.next(), "id: 10\nevent: current\ndata: {\"number\":10}\n\n");
    EXPECT_TRUE(other.next().starts_with("id: 10\ndata: "));
    streams.publish({vm_started(11), vm_started(12)});
    EXPECT_EQ(io.size(), 1U);
    run_io();
    EXPECT_EQ(*one.woken, 1);
    EXPECT_EQ(*other.woken, 1);
    EXPECT_TRUE(one.next().starts_with("id: 11\ndata: "));
    EXPECT_TRUE(other.next().starts_with("id: 11\ndata: "));
    EXPECT_EQ(one.next(), "");
    EXPECT_EQ(one.next(Due::beat), ":\nid: 12\n\n");
    EXPECT_TRUE(read_after.empty()) << "all of it was in memory";
}

TEST_F(EventStreamsTest, OneThatIsFarBehindReadsTheStore) {
    auto const reader = open("uid:0", 2);
    EXPECT_EQ(reader.next(), "");
    EXPECT_EQ(read_after, std::vector<std::uint64_t>{2});
    EventPage page;
    for (std::uint64_t number = 3; number <= 11; ++number)
        page.events.push_back(vm_started(number));
    page.last = 11;
    streams.publish({vm_started(11)});  // before the answer, as the control thread does
    answers.at(0)(page);
    run_io();
    EXPECT_EQ(*reader.woken, 2);
    EXPECT_TRUE(reader.next().starts_with("id: 3\ndata: "));
    EXPECT_EQ(reader.next(), "") << "11 is not sent twice";
}

TEST_F(EventStreamsTest, ARefusedPageIsAskedForAgainWithAHeartbeat) {
    auto const reader = open("uid:0", 2);
    EXPECT_EQ(reader.next(), "");
    answers.at(0)(fail(Problem::unavailable, "too many requests"));
    run_io();
    EXPECT_EQ(reader.next(), "");
    EXPECT_EQ(read_after.size(), 1U);
    EXPECT_EQ(reader.next(Due::beat), ":\n\n");
    EXPECT_EQ(read_after.size(), 2U);
}

TEST_F(EventStreamsTest, AnAnswerForAReaderThatLeftIsDropped) {
    {
        auto const reader = open("uid:0", 2);
        EXPECT_EQ(reader.next(), "");
    }
    answers.at(0)(EventPage{});
    run_io();
}

TEST_F(EventStreamsTest, AReaderThatMayNoLongerReadGetsNothingMore) {
    auto const reader = open("token:a");
    auto const other = open("token:b");
    EXPECT_NE(reader.next(), "ended");
    EXPECT_NE(other.next(), "ended");
    known.erase("token:a");
    streams.publish({vm_started(11)});
    run_io();
    EXPECT_EQ(reader.next(), "ended");
    EXPECT_TRUE(other.next().starts_with("id: 11\n"));
}

TEST_F(EventStreamsTest, WhatExpiresIsNoticedByTheNextHeartbeat) {
    auto const reader = open("token:a");
    EXPECT_NE(reader.next(), "ended");
    EXPECT_NE(reader.next(Due::beat), "ended");
    known.erase("token:a");
    EXPECT_EQ(reader.next(Due::beat), "ended");
}

TEST_F(EventStreamsTest, ThePlacesAreShared) {
    std::vector<Connected> all;
    for (int i = 0; i < 3; ++i) all.push_back(open("uid:0"));
    auto const refused = asked("uid:0");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unavailable);
    EXPECT_NE(refused.error().remedy.find("limits.event_streams_per_peer_max"), std::string::npos);
    auto const newcomer = open("token:a");
    EXPECT_EQ(*all[0].woken, 1);
    EXPECT_EQ(all[0].next(), "ended") << "the oldest of who has most";
    EXPECT_NE(all[1].next(), "ended");
    EXPECT_NE(newcomer.next(), "ended");
    auto const another = open("token:b");
    EXPECT_EQ(all[1].next(), "ended");
    EXPECT_FALSE(asked("token:c")) << "each has one";
    EXPECT_NE(all[2].next(), "ended");
}

TEST_F(EventStreamsTest, EachPrincipalHasAShare) {
    limits.streams_per_peer_max = 2;
    streams.limit(limits);
    run_io();
    auto const one = open("uid:0");
    auto const other = open("uid:0");
    auto const refused = asked("uid:0");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail, "uid:0 has the 2 streams of events that it may have");
    EXPECT_NE(refused.error().remedy.find("limits.event_streams_per_peer_max"), std::string::npos);
    EXPECT_TRUE(asked("token:a")) << "of its own name";
    EXPECT_NE(one.next(), "ended");
    EXPECT_NE(other.next(), "ended");
}

TEST_F(EventStreamsTest, APlaceIsFreeWhenItsReaderHasLeft) {
    std::vector<Connected> all;
    for (int i = 0; i < 3; ++i) all.push_back(open("uid:0"));
    all.pop_back();
    EXPECT_TRUE(asked("uid:0"));
    EXPECT_TRUE(asked("uid:0")) << "a HEAD, or a client that never came, holds none";
}

}  // namespace
}  // namespace vfmgr
