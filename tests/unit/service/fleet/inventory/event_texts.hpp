// SPDX-License-Identifier: Apache-2.0
// Events of hosts, and a client of the fleet's stream, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/http/sse.hpp"
#include "service/fleet/inventory/fleet_event_reader.hpp"

namespace vfmgr::fleet::tests {

inline HostEvent host_event(std::uint64_t number, std::string const& kind = "vm_started",
                            nlohmann::json members = nlohmann::json::object()) {
    members["number"] = number;
    members["kind"] = kind;
    return read_host_event(members.dump()).value();
}

// What a client got: "h1/7", "resync h1", "current".
struct FleetClient {
    std::vector<std::string> got;
    http::SseParser parser;
    int ids = 0;

    // Returns what is new.
    std::vector<std::string> take(std::vector<http::Frame> const& frames) {
        std::vector<std::string> news;
        for (auto const& frame : frames) {
            if (frame->starts_with(":\nid: ")) ++ids;
            EXPECT_TRUE(parser.feed(*frame, [&](http::SentEvent const& sent) {
                auto const data = nlohmann::json::parse(sent.data);
                if (sent.name == "current")
                    news.emplace_back("current");
                else if (sent.name == "resync")
                    news.push_back("resync " + data.at("host").get<std::string>());
                else
                    news.push_back(data.at("host").get<std::string>() + "/" +
                                   data.at("number").dump());
            }));
        }
        got.insert(got.end(), news.begin(), news.end());
        return news;
    }
    [[nodiscard]] std::optional<EventVector> place() const {
        if (parser.last_id().empty()) return std::nullopt;
        return EventVector::parse(parser.last_id()).value();
    }
};

}  // namespace vfmgr::fleet::tests
