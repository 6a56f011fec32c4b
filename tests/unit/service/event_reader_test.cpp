// SPDX-License-Identifier: Apache-2.0
// What one reader gets: every event that matches once and in order, however commits, posts to the
// io thread, pages of the store and the reader's own pace interleave.
#include "service/event_reader.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <charconv>
#include <functional>

#include "api/http/sse.hpp"

namespace vfmgr {
namespace {

using Due = http::Stream::Due;

PciAddress const pf{0, 1, 0, 0};

Event event(std::uint64_t number, EventKind kind = EventKind::vm_started) {
    Event one;
    one.number = number;
    one.kind = kind;
    one.pf = pf;
    one.detail = "VM a started";
    return one;
}

std::uint64_t number_of(std::string const& text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

// A client: what it got, and from where it would resume.
struct Got {
    std::vector<std::uint64_t> events;
    std::vector<std::string> places;  // "current 5"
    http::SseParser parser;

    void take(std::vector<http::Frame> const& frames) {
        for (auto const& frame : frames)
            EXPECT_TRUE(parser.feed(*frame, [this](http::SentEvent const& sent) {
                if (sent.name.empty())
                    events.push_back(number_of(sent.id));
                else
                    places.push_back(sent.name + " " + sent.id);
            }));
    }
    [[nodiscard]] std::optional<std::uint64_t> last() const {
        if (parser.last_id().empty()) return std::nullopt;
        return number_of(parser.last_id());
    }
};

EventPage page_of(std::vector<Event> const& all, std::uint64_t after, std::uint64_t pruned = 0) {
    EventPage page;
    for (auto const& one : all)
        if (one.number > after && page.events.size() < event_page_max) page.events.push_back(one);
    page.pruned = pruned;
    page.last = all.empty() ? 0 : all.back().number;
    return page;
}

std::vector<Event> events_up_to(std::uint64_t last) {
    std::vector<Event> all;
    for (std::uint64_t number = 1; number <= last; ++number) all.push_back(event(number));
    return all;
}

TEST(RecentEvents, KnowFromWhereOnTheyAreWhole) {
    RecentEvents recent({.events = 3}, page_of(events_up_to(5), 2));
    EXPECT_EQ(recent.last(), 5U);
    EXPECT_FALSE(recent.covers(1));
    EXPECT_TRUE(recent.covers(2));
    EXPECT_TRUE(recent.covers(5));
    EXPECT_FALSE(recent.covers(6));
    recent.append({event(5), event(7)});
    EXPECT_EQ(recent.last(), 7U) << "and 5 was there";
    EXPECT_FALSE(recent.covers(2));
    EXPECT_TRUE(recent.covers(3));
    EXPECT_EQ(recent.after(4, {}).frames.size(), 2U);
    EXPECT_EQ(recent.after(7, {}).frames.size(), 0U);
}

TEST(RecentEvents, WhatTheStoreDeletedIsMissing) {
    RecentEvents const recent({.events = 100}, page_of({event(3), event(9)}, 0, 4));
    EXPECT_FALSE(recent.covers(3));
    EXPECT_TRUE(recent.covers(4));
}

TEST(RecentEvents, AreBoundedInBytes) {
    auto const bytes = frame_of(event(10))->size();
    RecentEvents recent({.events = 100, .bytes = 2 * bytes}, {});
    recent.append({event(10), event(11), event(12)});
    EXPECT_FALSE(recent.covers(9));
    EXPECT_TRUE(recent.covers(10));
}

TEST(RecentEvents, AFrameIsSharedAndHasTheWholeEvent) {
    auto detached = event(1, EventKind::detached);
    detached.certificate.emplace();
    detached.certificate->vm = "vm1";
    RecentEvents recent({}, {});
    recent.append({detached});
    auto const frames = recent.after(0, {}).frames;
    EXPECT_EQ(frames, recent.after(0, {}).frames);
    EXPECT_EQ(*frames.at(0), *frame_of(detached));
    EXPECT_NE(frames.at(0)->find(R"("vm":"vm1")"), std::string::npos);
}

TEST(EventFilter, MatchesExactly) {
    auto one = event(1);
    one.vm = "a";
    one.vm_uuid = "11111111-1111-1111-1111-111111111111";
    one.attachment = "3f9c2b1d";
    EXPECT_TRUE(EventFilter{}.matches(one));
    EXPECT_TRUE((EventFilter{.pf = pf, .vm = "a", .attachment = "3f9c2b1d"}.matches(one)));
    EXPECT_TRUE(EventFilter{.vm = one.vm_uuid}.matches(one));
    EXPECT_FALSE(EventFilter{.vm = "A"}.matches(one));
    EXPECT_FALSE((EventFilter{.pf = PciAddress{0, 2, 0, 0}}.matches(one)));
    EXPECT_FALSE(EventFilter{.attachment = "3f9c"}.matches(one));
    EXPECT_TRUE((EventFilter{.kinds = {EventKind::drift, EventKind::vm_started}}.matches(one)));
    EXPECT_FALSE((EventFilter{.kinds = {EventKind::drift}}.matches(one)));
    EXPECT_FALSE(EventFilter{.vm = "a"}.matches(event(2)));
}

TEST(EventReader, BeginsNowAndSaysWhere) {
    RecentEvents recent({}, page_of(events_up_to(5), 0));
    EventReader reader({}, std::nullopt);
    Got got;
    got.take(*reader.next(recent, Due::more));
    EXPECT_EQ(got.places, std::vector<std::string>{"current 5"});
    EXPECT_TRUE(reader.next(recent, Due::more)->empty());
    recent.append({event(6), event(7)});
    got.take(*reader.next(recent, Due::more));
    EXPECT_EQ(got.events, (std::vector<std::uint64_t>{6, 7}));
}

TEST(EventReader, AHeartbeatMovesTheReaderOfAFilter) {
    RecentEvents recent({}, {});
    EventReader reader({.kinds = {EventKind::drift}}, 0);
    recent.append({event(1), event(2)});
    Got got;
    got.take(*reader.next(recent, Due::more));
    EXPECT_EQ(got.last(), std::nullopt);
    got.take(*reader.next(recent, Due::beat));
    EXPECT_EQ(got.last(), 2U);
    EXPECT_TRUE(got.events.empty());
}

TEST(EventReader, ResumesFromTheStore) {
    auto const all = events_up_to(700);
    RecentEvents const recent({.events = 10}, page_of(all, 690));
    EventReader reader({}, 100);
    Got got;
    for (int pages = 0; pages < 3; ++pages) {
        EXPECT_TRUE(reader.next(recent, Due::more)->empty());
        auto const after = reader.asks();
        ASSERT_TRUE(after);
        EXPECT_EQ(reader.asks(), std::nullopt) << "once";
        reader.take(*after, page_of(all, *after), recent);
        got.take(*reader.next(recent, Due::more));
    }
    EXPECT_TRUE(reader.next(recent, Due::more)->empty());
    EXPECT_EQ(reader.asks(), std::nullopt);
    EXPECT_EQ(got.events.size(), 600U);
    EXPECT_EQ(got.events.front(), 101U);
    EXPECT_EQ(got.events.back(), 700U);
}

TEST(EventReader, APageThatDoesNotComeIsAskedForAgain) {
    auto const all = events_up_to(50);
    RecentEvents const recent({.events = 16}, page_of(all, 34));
    EventReader reader({}, 1);
    Got got;
    EXPECT_TRUE(reader.next(recent, Due::more)->empty());
    EXPECT_EQ(reader.asks(), 1U);
    EXPECT_TRUE(reader.next(recent, Due::more)->empty());
    EXPECT_EQ(reader.asks(), std::nullopt);
    got.take(*reader.next(recent, Due::beat));
    EXPECT_EQ(got.last(), std::nullopt) << "it has not got what is before";
    EXPECT_EQ(reader.asks(), 1U);
    reader.take(1, page_of(all, 1), recent);
    reader.take(1, page_of(all, 1), recent);  // the first one was only late
    got.take(*reader.next(recent, Due::more));
    EXPECT_EQ(got.events.size(), 49U);
}

TEST(EventReader, AGapIsAResync) {
    auto const all = events_up_to(50);
    RecentEvents recent({.events = 16}, page_of(all, 34, 20));
    for (std::uint64_t const after : {19U, 51U, 1000U}) {
        EventReader reader({}, after);
        Got got;
        EXPECT_TRUE(reader.next(recent, Due::more)->empty());
        EXPECT_EQ(reader.asks(), after);
        reader.take(after, page_of(all, after, 20), recent);
        got.take(*reader.next(recent, Due::more));
        EXPECT_EQ(got.places, std::vector<std::string>{"resync 50"});
        EXPECT_EQ(got.last(), 50U);
    }
    EventReader reader({}, 20);
    EXPECT_TRUE(reader.next(recent, Due::more)->empty());
    reader.take(reader.asks().value(), page_of(all, 20, 20), recent);
    Got got;
    got.take(*reader.next(recent, Due::more));
    EXPECT_TRUE(got.places.empty());
    EXPECT_EQ(got.events.size(), 30U);
}

TEST(EventReader, OneThatCantFollowIsCut) {
    RecentEvents recent({.events = 16}, {});
    EventReader reader({}, std::nullopt);
    EXPECT_TRUE(reader.next(recent, Due::more));
    recent.append(events_up_to(16));
    EXPECT_TRUE(reader.next(recent, Due::more));
    for (std::uint64_t number = 17; number <= 33; ++number) recent.append({event(number)});
    EXPECT_EQ(reader.next(recent, Due::more), std::nullopt);
}

// The store, the control thread's posts in their order, and one client that resumes when it is cut.
class World {
  public:
    explicit World(EventFilter filter) : filter_(std::move(filter)) {}

    void commit(int count, bool matches) {
        std::vector<Event> events;
        for (int i = 0; i < count; ++i) {
            last_ += matches ? 1 : 2;  // numbers have gaps
            events.push_back(event(last_, matches ? EventKind::vm_started : EventKind::drift));
        }
        stored_.insert(stored_.end(), events.begin(), events.end());
        all_.insert(all_.end(), events.begin(), events.end());
        io_.emplace_back([this, events] { recent_.append(events); });
    }
    void prune(std::size_t count) {
        count = std::min(count, stored_.empty() ? 0 : stored_.size() - 1);
        if (count == 0) return;
        pruned_ = stored_[count - 1].number;
        stored_.erase(stored_.begin(), stored_.begin() + static_cast<std::ptrdiff_t>(count));
    }
    void connect(std::optional<std::uint64_t> after) {
        reader_.emplace(filter_, after);
        asked_.reset();
        ++connection_;
        connected_after_ = after.value_or(0);
        connected_at_ = last_;
        if (connection_ == 1) place_ = connected_after_;
    }
    void run_io() {
        if (io_.empty()) return;
        auto const work = std::move(io_.front());
        io_.erase(io_.begin());
        work();
    }
    // The control thread reads what was asked for.
    void read() {
        if (!asked_) return;
        auto const after = *std::exchange(asked_, std::nullopt);
        auto page = page_of(stored_, after, pruned_);
        page.last = last_;
        io_.emplace_back([this, after, page, connection = connection_] {
            if (connection == connection_) reader_->take(after, page, recent_);
        });
    }
    // False: nothing came.
    bool pull(Due due) {
        auto const frames = reader_->next(recent_, due);
        if (!frames) {
            connect(got.last());  // it was cut
            return true;
        }
        if (auto const after = reader_->asks()) asked_ = after;
        auto const places = got.places.size();
        got.take(*frames);
        if (got.places.size() > places) check_place();
        return !frames->empty();
    }
    void settle() {
        for (bool busy = true; busy;) {
            busy = pull(Due::more) || asked_ || !io_.empty();
            read();
            run_io();
        }
    }
    // All that matches since the last place, once and in order.
    void check() const {
        std::vector<std::uint64_t> expected = before_place_;
        for (auto const& one : all_)
            if (one.number > place_ && filter_.matches(one)) expected.push_back(one.number);
        RC_ASSERT(got.events == expected);
    }
    Got got;
    int resyncs = 0;

  private:
    // A client that resumes is told of a gap only if there is one.
    void check_place() {
        if (got.places.back().starts_with("resync")) {
            ++resyncs;
            RC_ASSERT(pruned_ > connected_after_ || connected_after_ > connected_at_);
        }
        place_ = got.last().value();
        before_place_ = got.events;
    }

    EventFilter const filter_;
    std::vector<Event> stored_;
    std::vector<Event> all_;
    std::uint64_t last_ = 0;
    std::uint64_t pruned_ = 0;
    std::vector<std::function<void()>> io_;
    RecentEvents recent_{{.events = 20}, {}};
    std::optional<EventReader> reader_;
    std::optional<std::uint64_t> asked_;
    int connection_ = 0;
    std::uint64_t connected_after_ = 0;
    std::uint64_t connected_at_ = 0;  // the last event then
    std::uint64_t place_ = 0;
    std::vector<std::uint64_t> before_place_;
};

RC_GTEST_PROP(EventReader, GetsEachEventOnceAndInOrder, ()) {
    World world(*rc::gen::arbitrary<bool>() ? EventFilter{}
                                            : EventFilter{.kinds = {EventKind::vm_started}});
    world.commit(*rc::gen::inRange(0, 600), true);
    auto const from = *rc::gen::inRange(-1, 600);
    world.connect(from < 0 ? std::nullopt : std::optional<std::uint64_t>(from));
    bool const prunes = *rc::gen::weightedElement<bool>({{3, false}, {1, true}});
    auto const moves = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 12));
    for (int const move : moves) {
        if (move == 0) world.commit(*rc::gen::inRange(1, 40), true);
        if (move == 1) world.commit(*rc::gen::inRange(1, 4), false);
        if (move == 2 && prunes) world.prune(static_cast<std::size_t>(*rc::gen::inRange(1, 300)));
        if (move == 3) world.connect(world.got.last());
        if (move == 4) world.read();
        if (move == 5) world.pull(Due::beat);
        if (move >= 6 && move <= 8) world.run_io();
        if (move >= 9) world.pull(Due::more);
    }
    world.settle();
    world.check();
    RC_TAG(world.resyncs > 0 ? "resync" : "no resync");
}

}  // namespace
}  // namespace vfmgr
