// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/replica_calls.hpp"

#include <gtest/gtest.h>

#include "api/types/fleet.hpp"
#include "api/types/json.hpp"

namespace vfmgr::fleet {
namespace {

constexpr auto id_of_fleet = "33333333-3333-4333-8333-333333333333";
FleetTrust const trust{id_of_fleet, std::string(64, 'a')};

Time after_seconds(int seconds) {
    return Time{} + std::chrono::seconds(1'000'000 + seconds);
}

http::Peer with_certificate(std::string const& uri, std::string authority = trust.authority) {
    http::TcpPeer peer{"10.0.0.9"};
    peer.certificate = http::PeerCertificate{{uri}, after_seconds(100), std::move(authority)};
    return peer;
}

std::string replica_uri(std::string const& fleet = id_of_fleet) {
    return to_uri({fleet, "r1"});
}

http::Request on_behalf(Principal const& who, std::optional<std::string> tenant = {}) {
    auto request = http::make_request("POST", "/v1/reservations");
    request.headers[on_behalf_of_header] =
        to_json_text(JsonWriter::encode(OnBehalfOf{who.name, who.role, std::move(tenant)}));
    return request;
}

TEST(ReplicaCall, IsKnownByTheFleetsCaAndTheFleetsName) {
    auto const replica = replica_of(with_certificate(replica_uri()), trust, after_seconds(0));
    ASSERT_TRUE(replica);
    EXPECT_EQ(replica->name, "fleet:r1");
    EXPECT_EQ(replica->fleet_replica, "r1");
    EXPECT_FALSE(
        replica_of(with_certificate(replica_uri(), std::string(64, 'b')), trust, after_seconds(0)))
        << "another CA signed it";
    EXPECT_FALSE(replica_of(with_certificate(replica_uri(), ""), trust, after_seconds(0)));
    EXPECT_FALSE(replica_of(with_certificate(replica_uri("44444444-4444-4333-8333-333333333333")),
                            trust, after_seconds(0)))
        << "of another fleet";
    EXPECT_FALSE(replica_of(with_certificate("vfmgr://" + std::string(id_of_fleet) + "/host/a"),
                            trust, after_seconds(0)));
    EXPECT_FALSE(replica_of(with_certificate(replica_uri()), trust, after_seconds(100)))
        << "expired";
    EXPECT_FALSE(replica_of(http::TcpPeer{"10.0.0.9"}, trust, after_seconds(0)));
    EXPECT_FALSE(replica_of(http::UnixPeer{}, trust, after_seconds(0)));
}

TEST(ReplicaCall, IsTheClientsOwnWithNoMoreThanItsRole) {
    auto const replica = *replica_of(with_certificate(replica_uri()), trust, after_seconds(0));
    auto const call = passed_on_call(replica, on_behalf({"token:ab12cd34", Role::operator_}), {});
    ASSERT_TRUE(call) << call.error().detail;
    EXPECT_EQ(call->who.name, "token:ab12cd34");
    EXPECT_EQ(call->who.role, Role::operator_);
    EXPECT_EQ(call->who.fleet_replica, "r1");
    EXPECT_FALSE(passed_on_call(replica, on_behalf({"token:a", Role::viewer}, "blue"), {}))
        << "there is no such tenant here";
}

TEST(ReplicaCall, ForItselfIsRefused) {
    auto const replica = *replica_of(with_certificate(replica_uri()), trust, after_seconds(0));
    auto const own = passed_on_call(replica, http::make_request("GET", "/v1/fleet"), {});
    ASSERT_FALSE(own);
    EXPECT_EQ(own.error().problem, Problem::forbidden);
}

TEST(ReplicaCall, CanBeSentByNobodyElse) {
    Principal const person{"token:ab12cd34", Role::admin};
    EXPECT_TRUE(passed_on_call(person, http::make_request("GET", "/v1/fleet"), {}));
    auto const forged = passed_on_call(person, on_behalf({"uid:0", Role::admin}), {});
    ASSERT_FALSE(forged);
    EXPECT_EQ(forged.error().problem, Problem::invalid_request);
}

}  // namespace
}  // namespace vfmgr::fleet
