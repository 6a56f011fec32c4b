// SPDX-License-Identifier: Apache-2.0
// What one reader of the fleet's events gets, by example; replicas_test.cpp has the property.
#include "service/fleet/inventory/fleet_event_reader.hpp"

#include <gtest/gtest.h>

#include "tests/unit/service/fleet/inventory/event_texts.hpp"
#include "tests/unit/service/fleet/inventory/host_texts.hpp"

namespace vfmgr::fleet {
namespace {

using namespace tests;
using Due = http::Stream::Due;
using Got = std::vector<std::string>;
using nlohmann::json;

struct FleetEventReaderTest : testing::Test {
    FleetEvents events;
    FleetClient client;
    std::optional<FleetEventReader> reader;
    Deadline now{};

    FleetEventReaderTest() {
        events.put_host(host("h1", 1, "r1", {{"row", "3"}}));
        events.put_host(host("h2", 2, "r2"));
        events.begin(1, 10);
        events.begin(2, 500);
    }
    void connect(std::optional<EventVector> after = {}, FleetEventFilter filter = {}) {
        reader.emplace(std::move(filter), std::move(after));
    }
    // "ended", or what came.
    Got pull(Due due = Due::more) {
        auto const frames = reader->next(events, due, now);
        return frames ? client.take(*frames) : Got{"ended"};
    }
    static EventVector places(std::uint64_t h1, std::uint64_t h2) {
        EventVector vector;
        vector.put(1, h1);
        vector.put(2, h2);
        return vector;
    }
};

TEST_F(FleetEventReaderTest, BeginsWithWhatComes) {
    events.append(1, host_event(11));
    connect();
    EXPECT_EQ(pull(), Got{"current"});
    EXPECT_EQ(client.place(), places(11, 500));
    events.append(2, host_event(501));
    events.append(1, host_event(12));
    events.append(2, host_event(501));
    events.append(2, host_event(503));
    EXPECT_EQ(pull(), (Got{"h2/501", "h1/12", "h2/503"}));
    EXPECT_EQ(pull(), Got{});
}

TEST_F(FleetEventReaderTest, AFrameIsSharedAndIsTheHostsText) {
    auto const event = host_event(11, "attached", {{"vm", "db1"}, {"detail", "a\nb"}});
    connect();
    FleetEventReader other({}, std::nullopt);
    EXPECT_EQ(pull(), Got{"current"});
    EXPECT_TRUE(other.next(events, Due::more, now));
    events.append(1, event);
    auto const frames = reader->next(events, Due::more, now);
    EXPECT_EQ(frames, other.next(events, Due::more, now));
    EXPECT_EQ(*frames->at(0), "data: {\"host\":\"h1\"," + event.text.substr(1) + "\n\n");
}

TEST_F(FleetEventReaderTest, IdsComeOnceASecondAndWithHeartbeats) {
    connect();
    pull();
    for (std::uint64_t number = 11; number <= 30; ++number) {
        now += std::chrono::milliseconds(100);
        events.append(1, host_event(number));
        pull();
    }
    EXPECT_EQ(client.ids, 2);
    EXPECT_EQ(client.place(), places(30, 500));
    events.append(1, host_event(31));
    pull();
    EXPECT_EQ(client.place(), places(30, 500));
    EXPECT_EQ(pull(Due::beat), Got{});
    EXPECT_EQ(client.place(), places(31, 500));
    auto const idle = reader->next(events, Due::beat, now);
    EXPECT_EQ(*idle->at(0), ":\n\n") << "nothing moved";
    events.hear(2, 540);
    pull(Due::beat);
    EXPECT_EQ(client.place(), places(31, 540)) << "events that matched nothing count, too";
}

TEST_F(FleetEventReaderTest, ResumesOnEachHostWhereItWas) {
    for (std::uint64_t number = 1; number <= 5; ++number) {
        events.append(1, host_event(10 + number));
        events.append(2, host_event(500 + number));
    }
    connect(places(13, 504));
    EXPECT_EQ(pull(), (Got{"h1/14", "h1/15", "h2/505"}));
    connect(places(15, 505));
    EXPECT_EQ(pull(), Got{});
}

TEST_F(FleetEventReaderTest, WhatIsNotHereIsAResyncOfThatHostOnly) {
    events.append(1, host_event(11));
    events.append(2, host_event(501));
    connect(places(9, 500));
    EXPECT_EQ(pull(), (Got{"resync h1", "h2/501"}));
    now += std::chrono::seconds(1);
    pull();
    EXPECT_EQ(client.place(), places(11, 501));
    EventVector one;
    one.put(2, 501);
    connect(one);
    EXPECT_EQ(pull(), Got{"resync h1"}) << "a host that the client has not known";
}

TEST_F(FleetEventReaderTest, AGapOnOneHostDoesNotDisturbTheOthers) {
    connect();
    pull();
    events.append(1, host_event(11));
    events.begin(1, 20);
    events.append(2, host_event(501));
    events.append(1, host_event(21));
    EXPECT_EQ(pull(), (Got{"resync h1", "h2/501"})) << "21 is what it lists";
    events.append(1, host_event(22));
    EXPECT_EQ(pull(), Got{"h1/22"});
    events.begin(1, 22);
    EXPECT_EQ(pull(), Got{}) << "no gap: the host's stream goes on where it was";
}

TEST_F(FleetEventReaderTest, AHostThatTakesEventsBackIsListedAgain) {
    connect();
    pull();
    events.begin(2, 400);  // its store was restored
    events.append(2, host_event(401));
    EXPECT_EQ(pull(), Got{"resync h2"});
    events.append(2, host_event(402));
    EXPECT_EQ(pull(), Got{"h2/402"});
    connect(places(10, 402));
    EXPECT_EQ(pull(), Got{}) << "once";
}

TEST_F(FleetEventReaderTest, ASlowerReplicaIsNoGap) {
    connect(places(14, 500));
    EXPECT_EQ(pull(), Got{});
    events.append(1, host_event(11));
    EXPECT_EQ(pull(), Got{"h1/11"}) << "once more";
    for (std::uint64_t number = 12; number <= 15; ++number) events.append(1, host_event(number));
    events.hear(1, 15);
    EXPECT_EQ(pull(), (Got{"h1/12", "h1/13", "h1/14", "h1/15"}));
}

TEST_F(FleetEventReaderTest, NumbersThatTheHostNeverGaveAreAResync) {
    connect(places(14, 500));
    EXPECT_EQ(pull(), Got{});
    events.hear(1, 10);
    EXPECT_EQ(pull(), Got{"resync h1"});
    EXPECT_EQ(pull(), Got{});
}

TEST_F(FleetEventReaderTest, HostsJoinAndLeave) {
    connect();
    pull();
    events.put_host(host("h3", 3));
    EXPECT_EQ(pull(), Got{});
    events.begin(3, 7);
    events.append(3, host_event(8));
    EXPECT_EQ(pull(), Got{"resync h3"});
    events.append(3, host_event(9));
    EXPECT_EQ(pull(), Got{"h3/9"});
    events.remove_host(3);
    events.append(3, host_event(10));
    EXPECT_EQ(pull(), Got{});
    pull(Due::beat);
    EXPECT_EQ(client.place(), places(10, 500));
}

TEST_F(FleetEventReaderTest, APlaceOnAHostThatThisReplicaDoesNotKnowYetIsKept) {
    auto vector = places(10, 500);
    vector.put(3, 7);
    connect(vector);
    events.append(1, host_event(11));
    EXPECT_EQ(pull(), Got{"h1/11"});
    pull(Due::beat);
    EXPECT_EQ(client.place()->at(3), 7U);
    events.put_host(host("h3", 3));
    events.begin(3, 7);
    events.append(3, host_event(8));
    EXPECT_EQ(pull(), Got{"h3/8"}) << "no gap";
}

TEST_F(FleetEventReaderTest, OneThatCantFollowIsCut) {
    events = FleetEvents({.bytes_per_host = 5 * (event_overhead + 100)});
    events.put_host(host("h1", 1));
    events.put_host(host("h2", 2));
    events.begin(1, 10);
    events.begin(2, 500);
    connect();
    pull();
    events.append(2, host_event(501));
    for (std::uint64_t number = 11; number <= 30; ++number) events.append(1, host_event(number));
    EXPECT_EQ(pull(), Got{"ended"});
    connect(client.place());
    EXPECT_EQ(pull(), (Got{"resync h1", "h2/501"})) << "a noisy host costs no other's events";
    for (std::uint64_t number = 31; number <= 33; ++number) events.append(1, host_event(number));
    EXPECT_EQ(pull(), (Got{"h1/31", "h1/32", "h1/33"}));
}

TEST(FleetEventsTest, AreBoundedInAll) {
    FleetEvents events({.bytes_per_host = 1 << 20, .bytes = 20 * (event_overhead + 100)});
    for (std::uint32_t number = 1; number <= 4; ++number) {
        events.put_host(host("h" + std::to_string(number), number));
        events.begin(number, 0);
    }
    for (std::uint64_t event = 1; event <= 100; ++event)
        for (std::uint32_t number = 1; number <= 4; ++number)
            events.append(number, host_event(event));
    EXPECT_LE(events.bytes(), 20 * (event_overhead + 100));
    EXPECT_GE(events.entries().size(), 15U);
    EXPECT_GT(events.find(1)->base, 90U);
    EXPECT_EQ(events.find(1)->last, 100U);
    for (std::uint32_t number = 1; number <= 4; ++number) events.remove_host(number);
    EXPECT_EQ(events.entries().size(), 4U) << "that they left";
    EXPECT_EQ(events.bytes(), 4 * event_overhead);
}

TEST_F(FleetEventReaderTest, Filters) {
    auto const got = [&](http::Request const& request) {
        auto filter = read_event_filter(request);
        if (!filter) return Got{filter.error().detail};
        connect(places(10, 500), *filter);
        return pull();
    };
    auto const asked = [&](std::map<std::string, std::string> query) {
        http::Request request;
        request.query = std::move(query);
        return got(request);
    };
    events.append(
        1, host_event(
               11, "attached",
               {{"vm", "db1"}, {"vm_uuid", "u1"}, {"pf", "0000:01:00.0"}, {"attachment", "a1"}}));
    events.append(2, host_event(501, "network_changed", {{"network", "blue"}}));
    events.append(2, host_event(502, "invented_later", {{"pool", "p"}}));
    EXPECT_EQ(asked({}), (Got{"h1/11", "h2/501", "h2/502"}));
    EXPECT_EQ(asked({{"host", "h2"}}), (Got{"h2/501", "h2/502"}));
    EXPECT_EQ(asked({{"rack", "r1"}}), Got{"h1/11"});
    EXPECT_EQ(asked({{"label", "row=3"}}), Got{"h1/11"});
    EXPECT_EQ(asked({{"vm", "u1"}}), Got{"h1/11"});
    EXPECT_EQ(asked({{"pf", "0000:01:00.0"}, {"vm", "db1"}}), Got{"h1/11"});
    EXPECT_EQ(asked({{"attachment", "a2"}}), Got{});
    EXPECT_EQ(asked({{"network", "blue"}}), Got{"h2/501"});
    EXPECT_EQ(asked({{"pool", "p"}}), Got{"h2/502"});
    EXPECT_EQ(asked({{"kind", "attached,network_changed"}}), (Got{"h1/11", "h2/501"}));
    EXPECT_EQ(asked({{"kind", "invented_later"}}),
              Got{"there is no kind of event 'invented_later'"});
    EXPECT_NE(asked({{"pf", "x"}}), Got{});
    connect(places(10, 500), {.of = {.host = "h2"}});
    pull();
    pull(Due::beat);
    ASSERT_TRUE(client.place());
    EXPECT_EQ(client.place()->at(1), std::nullopt) << "its ids have the hosts that it follows";
}

TEST_F(FleetEventReaderTest, AHostThatIsRelabelledIsListed) {
    connect({}, {.of = {.rack = "r1"}});
    pull();
    events.put_host(host("h2", 2, "r1"));
    events.append(2, host_event(501));
    EXPECT_EQ(pull(), Got{"resync h2"});
    events.append(2, host_event(502));
    EXPECT_EQ(pull(), Got{"h2/502"});
    events.put_host(host("h1", 1, "r9"));
    events.append(1, host_event(11));
    EXPECT_EQ(pull(), Got{});
}

TEST_F(FleetEventReaderTest, ATenantGetsItsOwn) {
    auto const full = [](std::uint64_t number, std::string const& kind, std::string const& uuid) {
        auto event = json::parse(example("event"));
        event["number"] = number;
        event["kind"] = kind;
        event["vm_uuid"] = uuid;
        event["secret_of_a_newer_host"] = 1;
        return read_host_event(event.dump()).value();
    };
    connect(places(10, 500),
            {.viewer = std::make_shared<Tenant const>(Tenant{"blue", {"u1"}, {}, {}, {}, {}})});
    events.append(1, full(11, "drift", "u1"));
    events.append(1, full(12, "attached", "u1"));
    events.append(1, full(13, "attached", "u2"));
    events.append(1, full(14, "invented_later", "u1"));
    auto const frames = reader->next(events, Due::more, now);
    ASSERT_EQ(frames->size(), 2U);
    auto const drift = json::parse(frames->at(0)->substr(6));
    EXPECT_EQ(drift.at("number"), 11);
    EXPECT_EQ(drift.at("host"), "h1");
    EXPECT_EQ(drift.at("detail"), "") << "it may quote whatever was in the way";
    EXPECT_FALSE(drift.contains("secret_of_a_newer_host"));
    EXPECT_NE(json::parse(frames->at(1)->substr(6)).at("detail"), "");
}

TEST(HostEvent, IsOutsideInput) {
    EXPECT_FALSE(read_host_event("{}"));
    EXPECT_FALSE(read_host_event(R"({"number":1})"));
    EXPECT_FALSE(read_host_event(R"({"number":-1,"kind":"drift"})"));
    EXPECT_FALSE(read_host_event(R"({"number":1,"kind":"drift","pf":"x"})"));
    EXPECT_FALSE(read_host_event(R"({"number":1,"kind":"drift","host":"h2"})"));
    EXPECT_FALSE(read_host_event(R"({"number":1,"kind":"drift","detail":")" +
                                 std::string(event_bytes_max, 'a') + "\"}"));
    EXPECT_EQ(read_host_event(R"({"number":1,"kind":"x"})")->kind, std::nullopt);
    EXPECT_EQ(read_host_event(example("event"))->vf, 2U);
    EXPECT_EQ(read_host_event("{\"number\":1,\r\n\"kind\":\"x\"}")->text,
              R"({"number":1,"kind":"x"})");
}

}  // namespace
}  // namespace vfmgr::fleet
