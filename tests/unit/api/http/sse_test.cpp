// SPDX-License-Identifier: Apache-2.0
#include "api/http/sse.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace vfmgr::http {
namespace {

struct Parsed {
    std::vector<SentEvent> events;
    std::string last_id;
    bool fits = true;
    bool operator==(Parsed const&) const = default;
};

Parsed parse(std::string_view text, std::size_t part = 1 << 20, std::size_t bytes_max = 1 << 20) {
    SseParser parser(bytes_max);
    Parsed parsed;
    for (; !text.empty(); text.remove_prefix(std::min(part, text.size())))
        parsed.fits = parser.feed(text.substr(0, part),
                                  [&](SentEvent const& event) { parsed.events.push_back(event); });
    parsed.last_id = parser.last_id();
    return parsed;
}

TEST(Sse, WhatIsWrittenIsRead) {
    auto const text = sse_event(7, "", R"({"number":7})") + sse_heartbeat(8) +
                      sse_event(9, "resync", "{}") + sse_heartbeat({});
    Parsed const expected{{{"7", "", R"({"number":7})"}, {"9", "resync", "{}"}}, "9"};
    for (std::size_t part = 1; part < text.size(); ++part) EXPECT_EQ(parse(text, part), expected);
}

TEST(Sse, AHeartbeatMovesTheIdAndIsNoEvent) {
    auto const parsed = parse(sse_event(7, "", "a") + sse_heartbeat(12));
    EXPECT_EQ(parsed.events.size(), 1U);
    EXPECT_EQ(parsed.last_id, "12");
    EXPECT_EQ(parse(sse_heartbeat({})).last_id, "");
}

// A client that resumes after an event whose end did not come would miss it.
TEST(Sse, AnIdCountsWhenItsEventIsComplete) {
    auto const text = sse_event(7, "", "a") + sse_event(8, "", "b");
    EXPECT_EQ(parse(std::string_view(text).substr(0, text.size() - 1)).last_id, "7");
    EXPECT_EQ(parse(text).last_id, "8");
}

// From the standard's section on the interpretation of an event stream.
TEST(Sse, TheStandardsExamples) {
    EXPECT_EQ(parse("data: YHOO\ndata: +2\ndata: 10\n\n").events,
              (std::vector<SentEvent>{{"", "", "YHOO\n+2\n10"}}));
    EXPECT_EQ(parse(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  "
                    "third event\n\n")
                  .events,
              (std::vector<SentEvent>{
                  {"1", "", "first event"}, {"", "", "second event"}, {"", "", " third event"}}));
    EXPECT_EQ(parse("data\n\ndata\ndata\n\ndata:").events,
              (std::vector<SentEvent>{{"", "", ""}, {"", "", "\n"}}));
    EXPECT_EQ(parse("data:test\n\ndata: test\n\n").events,
              (std::vector<SentEvent>{{"", "", "test"}, {"", "", "test"}}));
}

TEST(Sse, LinesEndInThreeWays) {
    std::vector<SentEvent> const expected{{"", "a", "b"}, {"", "", "c"}};
    for (std::string const end : {"\n", "\r", "\r\n"}) {
        auto const text =
            "event:a" + end + "data:b" + end + end + "unknown: x" + end + "data:c" + end + end;
        for (std::size_t part = 1; part < text.size(); ++part)
            EXPECT_EQ(parse("\xef\xbb\xbf" + text, part).events, expected) << part;
    }
}

TEST(Sse, AnIdWithANulIsNone) {
    EXPECT_EQ(parse(std::string_view("id: 1\n\nid: 2\0\n\n", 16)).last_id, "1");
}

TEST(Sse, AnEventHasALimit) {
    EXPECT_TRUE(parse("data: " + std::string(94, 'x') + "\n\n", 7, 100).fits);
    EXPECT_FALSE(parse("data: " + std::string(95, 'x') + "\n\n", 7, 100).fits);
    auto lines =
        parse("data: " + std::string(60, 'x') + "\ndata: " + std::string(60, 'x') + "\n\n", 7, 100);
    EXPECT_FALSE(lines.fits);
    EXPECT_TRUE(lines.events.empty());
}

}  // namespace
}  // namespace vfmgr::http
