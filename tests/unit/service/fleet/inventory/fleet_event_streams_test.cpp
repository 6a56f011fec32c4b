// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/fleet_event_streams.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "tests/unit/service/fleet/inventory/event_texts.hpp"
#include "tests/unit/service/fleet/inventory/host_texts.hpp"

namespace vfmgr::fleet {
namespace {

using namespace tests;
using Due = http::Stream::Due;

struct FleetEventStreamsTest : testing::Test {
    std::deque<std::function<void()>> io;
    FleetEventStreams streams{EventStreamLimits{.streams_max = 2, .streams_per_peer_max = 1},
                              {},
                              [this](std::function<void()> work) { io.push_back(std::move(work)); },
                              system_clock()};

    FleetEventStreamsTest() {
        change([](FleetEvents& events) {
            events.put_host(host("h1", 1));
            events.begin(1, 10);
        });
    }
    void change(std::function<void(FleetEvents&)> how) {
        streams.change(std::move(how));
        for (; !io.empty(); io.pop_front()) io.front()();
    }
    Result<http::Response> open(std::string const& who, std::string const& last_id = "") {
        http::Request request;
        if (!last_id.empty()) request.headers["last-event-id"] = last_id;
        return streams.open(request, who, {});
    }
};

TEST_F(FleetEventStreamsTest, AChangeWakesReadersOnce) {
    auto const response = open("uid:0");
    ASSERT_TRUE(response);
    EXPECT_EQ(response->content_type, "text/event-stream");
    int woken = 0;
    response->stream->begin([&] { ++woken; });
    FleetClient client;
    EXPECT_EQ(client.take(response->stream->next(Due::more).value()),
              std::vector<std::string>{"current"});
    change([](FleetEvents& events) {
        events.append(1, host_event(11));
        events.append(1, host_event(12));
    });
    EXPECT_EQ(woken, 1);
    EXPECT_EQ(client.take(response->stream->next(Due::more).value()),
              (std::vector<std::string>{"h1/11", "h1/12"}));
    auto const again = open("token:a", client.parser.last_id());
    FleetClient other;
    EXPECT_EQ(other.take(again->stream->next(Due::more).value()),
              (std::vector<std::string>{"h1/11", "h1/12"}));
}

TEST_F(FleetEventStreamsTest, ThePlacesAreShared) {
    auto const one = open("uid:0");
    auto const refused = open("uid:0");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unavailable);
    EXPECT_NE(refused.error().remedy.find("/etc/vfmgr/fleetd.toml"), std::string::npos);
    auto const other = open("token:a");
    EXPECT_TRUE(other);
    EXPECT_FALSE(open("token:b"));
}

TEST_F(FleetEventStreamsTest, AnIdOfAnotherKindIsRefused) {
    EXPECT_FALSE(open("uid:0", "41"));
}

}  // namespace
}  // namespace vfmgr::fleet
