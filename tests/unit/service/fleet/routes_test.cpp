// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/routes/routes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "service/documents/documents.hpp"
#include "service/fleet/metrics.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fake_etcd.hpp"

namespace vfmgr::fleet {
namespace {

using nlohmann::json;

// All that the routes are made of; nothing of it is begun.
struct Routes : testing::Test {
    FakeClock clock;
    FakeCluster cluster{clock};
    FakeEtcd etcd{cluster};
    Self self;
    http::ClientPool pool;
    Inventory inventory;
    Registry registry{etcd, clock, [](auto const&) {}};
    Writer writer{etcd, registry, {clock, [](Deadline) { return true; }}};
    Followers followers{{pool, inventory, clock, {}, {}, {}}};
    Keeper keeper{{etcd, registry, writer, clock, {}, {}, {}, {}, {}}};
    FleetEventStreams streams{{}, {}, [](auto const&) {}, clock};
    Workers workers{{}};
    AuditRing audit;
    FleetMetrics metrics;
    Scheduler scheduler{{[this] { return registry.state(); },
                         writer,
                         [this] { return inventory.snapshot(); },
                         [] { return std::optional<Revision>(); },
                         {},
                         {},
                         {clock, [](Deadline) { return true; }}}};
    Parts parts{self, registry, writer, inventory, followers, pool, clock, scheduler, keeper};

    std::vector<FleetRoute> all() {
        FleetSeams seams;
        seams.routes = all_fleet_routes(parts, workers, streams, {etcd, {}}, [](auto const&) {});
        return all_routes({workers, audit, metrics}, seams);
    }
};

std::set<std::string> described(json const& document) {
    std::set<std::string> all;
    for (auto const& [path, item] : document.at("paths").items())
        for (auto const& [method, operation] : item.items()) {
            if (method == "parameters") continue;
            std::string verb = method;
            std::ranges::transform(verb, verb.begin(), ::toupper);
            all.insert(verb + " " + path + " " + operation.value("x-role", std::string("anyone")) +
                       (operation.value("x-tenants", false) ? " tenants" : ""));
        }
    return all;
}

// Each route is in the document, and the document has no other.
TEST_F(Routes, AreThoseOfTheDocument) {
    auto const document = json::parse(documents::openapi);
    std::set<std::string> served;
    for (auto const& route : all()) {
        auto const& endpoint = route.endpoint;
        // Passed on: any method, and a path of several segments, which a document can't say.
        auto const method = endpoint.passed_on ? "GET" : endpoint.method;
        auto path = endpoint.path;
        if (auto const rest = path.find("..."); rest != path.npos) path.erase(rest, 3);
        auto const& role = endpoint.role;
        served.insert(method + " " + path + " " +
                      (role ? std::string(enum_name(*role)) : std::string("anyone")) +
                      (endpoint.audience == Audience::tenants ? " tenants" : ""));
    }
    EXPECT_EQ(described(document), served);
}

// What a request may ask for is what the document says, too.
TEST_F(Routes, ReadTheParametersOfTheDocument) {
    auto const document = json::parse(documents::openapi);
    auto const& parameters = document.at("components").at("parameters");
    for (auto const& route : all()) {
        auto const& endpoint = route.endpoint;
        if (endpoint.passed_on || !document.at("paths").contains(endpoint.path)) continue;
        std::string verb = endpoint.method;
        std::ranges::transform(verb, verb.begin(), ::tolower);
        auto const& operation = document.at("paths").at(endpoint.path).at(verb);
        std::set<std::string> named;
        for (auto one : operation.value("parameters", json::array())) {
            if (one.contains("$ref")) {
                auto const reference = one.at("$ref").get<std::string>();
                one = parameters.at(reference.substr(reference.rfind('/') + 1));
            }
            if (one.at("in") == "query") named.insert(one.at("name").get<std::string>());
        }
        EXPECT_EQ(named, (std::set<std::string>(endpoint.query.begin(), endpoint.query.end())))
            << endpoint.method << " " << endpoint.path;
    }
}

// It knows no host yet: an empty list would say that there is none.
TEST_F(Routes, RefuseUntilEtcdHasBeenRead) {
    std::size_t refused = 0;
    auto const of_fleet = all_fleet_routes(parts, workers, streams, {etcd, {}}, [](auto const&) {});
    for (auto const& route : of_fleet) {
        // These say themselves how old they are, and why.
        if (route.endpoint.path == "/v1/fleet" || route.endpoint.path == "/v1/fleet/checks")
            continue;
        Call const call{};
        std::optional<int> status;
        route.handle(call, [&](http::Response const& response) { status = response.status; });
        EXPECT_EQ(status, 503) << route.endpoint.method << " " << route.endpoint.path;
        ++refused;
    }
    EXPECT_GT(refused, 20U);
}

}  // namespace
}  // namespace vfmgr::fleet
