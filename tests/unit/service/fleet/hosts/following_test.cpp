// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/hosts/following.hpp"

#include <gtest/gtest.h>

#include <map>

namespace vfmgr::fleet {
namespace {

using namespace std::chrono_literals;

constexpr auto nothing = R"({"items":[],"next":null})";

// A host that answers what it is asked for, when the test lets it.
struct Followed {
    Deadline now{1000s};
    Time at{1000s};
    std::vector<std::optional<std::uint64_t>> opened;
    std::map<std::uint64_t, std::string> asked;
    std::vector<http::SentEvent> events;
    std::vector<std::uint64_t> other_history;
    int contacts = 0;
    Following following;

    explicit Followed(KnownEvent known = {})
        : following(
              {.open = [this](std::optional<std::uint64_t> after) { opened.push_back(after); },
               .close = [] {},
               .get = [this](std::uint64_t number,
                             http::Request const& request) { asked[number] = request.path; },
               .event = [this](http::SentEvent const& event) { events.push_back(event); },
               .contact = [this](Contact const&) { ++contacts; },
               .other_history = [this](std::uint64_t number) { other_history.push_back(number); }},
              DocumentLimits{}, std::move(known)) {}

    void turn() { static_cast<void>(following.turn(now, at)); }
    void begin() {
        turn();
        following.begun(at);
        turn();
    }
    void came(std::string const& text) {
        following.came(text, now, at);
        turn();
    }
    void event_came(int number, std::string const& minute = "00") {
        came("id: " + std::to_string(number) + "\ndata: {\"number\":" + std::to_string(number) +
             ",\"at\":\"2026-01-31T12:" + minute +
             ":00.000Z\",\"kind\":\"token_created\",\"detail\":\"\"}\n\n");
    }
    static std::string body_of(std::string const& path) {
        if (path == "/v1")
            return R"({"name":"vfmgr","version":"0.2.0","api":"v1","features":[],"links":[]})";
        if (path == "/v1/fleet")
            return R"({"membership":null,"store":"s","last_event":3,"restored_at":null})";
        return path == "/v1/identities" ? R"({"macs":[],"guids":[],"addresses":[]})" : nothing;
    }
    void answer_all() {
        while (!asked.empty()) {
            auto const [number, path] = *asked.begin();
            asked.erase(asked.begin());
            http::Response response;
            response.body = body_of(path);
            following.answered(number, response, now, at);
            turn();
        }
    }
};

TEST(Following, IsCurrentWhenEverythingWasRead) {
    Followed host;
    host.begin();
    EXPECT_EQ(host.opened, (std::vector<std::optional<std::uint64_t>>{std::nullopt}));
    EXPECT_EQ(host.asked.size(), 4U) << "no more at a time";
    EXPECT_TRUE(host.following.stale());
    host.answer_all();
    EXPECT_FALSE(host.following.stale());
    EXPECT_EQ(host.contacts, 1);
    EXPECT_EQ(host.following.version(), "0.2.0");
}

TEST(Following, ResumesWithTheEventThatItHas) {
    Followed host;
    host.begin();
    host.answer_all();
    host.event_came(7);
    host.following.ended({Problem::unavailable, "gone", {}}, host.now, host.at);
    ASSERT_TRUE(host.following.unreachable_since());
    EXPECT_EQ(host.following.stale()->why, StaleWhy::unreachable);
    host.now += 60s;
    host.begin();
    EXPECT_EQ(host.opened.back(), 6U);
    host.event_came(7);
    host.event_came(8);
    host.answer_all();
    EXPECT_TRUE(host.other_history.empty());
    EXPECT_FALSE(host.following.stale());
    EXPECT_EQ(host.following.last_event().number, 8U);
    EXPECT_EQ(host.events.back().id, "8");
}

// The host's store was restored, and has given the number to another event since.
TEST(Following, NoticesAnotherHistoryOfTheSameNumbers) {
    Followed host;
    host.begin();
    host.event_came(7);
    host.following.ended({Problem::unavailable, "gone", {}}, host.now, host.at);
    host.now += 60s;
    host.begin();
    host.event_came(7, "01");
    EXPECT_EQ(host.other_history, std::vector<std::uint64_t>{7});
}

TEST(Following, NoticesAHistoryThatIsShorter) {
    Followed host({7, "2026-01-31T12:00:00.000Z token_created"});
    host.begin();
    EXPECT_EQ(host.opened.back(), 6U) << "from what the fleet has marked";
    host.came("event: resync\nid: 5\ndata: {\"number\":5}\n\n");
    EXPECT_EQ(host.other_history, std::vector<std::uint64_t>{7});
}

TEST(Following, AsksAgainForWhatFailedButNotAtOnce) {
    Followed host;
    host.begin();
    auto const [number, path] = *host.asked.begin();
    host.asked.erase(number);
    http::Response refused;
    refused.status = 500;
    host.following.answered(number, refused, host.now, host.at);
    EXPECT_NE(host.following.trouble().find("500"), std::string::npos);
    host.answer_all();
    EXPECT_TRUE(host.following.stale());
    host.now += 5s;
    host.turn();
    host.answer_all();
    EXPECT_FALSE(host.following.stale());
    EXPECT_EQ(host.contacts, 1);
}

// An answer of the connection before is of another time.
TEST(Following, TakesNoAnswerOfAConnectionThatEnded) {
    Followed host;
    host.begin();
    auto const late = host.asked;
    host.following.ended({Problem::unavailable, "gone", {}}, host.now, host.at);
    for (auto const& [number, path] : late) {
        http::Response response;
        response.body = Followed::body_of(path);
        host.following.answered(number, response, host.now, host.at);
    }
    EXPECT_EQ(host.contacts, 0);
}

}  // namespace
}  // namespace vfmgr::fleet
