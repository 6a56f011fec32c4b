// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/placement/host_for.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/service/fleet/placement/placed_host.hpp"

namespace vfmgr::fleet {
namespace {

using testing::HasSubstr;
using tests::PlacedHost;

// h1 has VMs a and both; h2 has b, both and the attachment 3f9c2b1d; h2 keeps the reservation own.
struct HostFor : testing::Test {
    InventoryView view;
    State state;
    Principal who{"uid:0", Role::operator_};

    void SetUp() override {
        PlacedHost one("h1");
        one.put(Collection::vms, {tests::vm_text("a"), tests::vm_text("both")});
        PlacedHost two("h2");
        two.put(Collection::vms, {tests::vm_text("b"), tests::vm_text("both")});
        two.put(Collection::attachments, {tests::attachment_text("3f9c2b1d", 1, 0, "b")});
        two.put(Collection::reservations, {tests::reservation_text("own", {{1, 1}})});
        view.hosts = {std::make_shared<HostPart const>(one.part),
                      std::make_shared<HostPart const>(two.part)};
        change([](auto& hosts) {
            for (auto const* const name : {"h1", "h2"})
                hosts[name].record.state = FleetHostState::active;
        });
    }
    template <class Change>
    void change(Change apply) {
        auto hosts = std::make_shared<Records<HostRecord>>(*state.hosts);
        apply(*hosts);
        state.hosts = hosts;
    }
    Result<std::string> of(std::string const& body) {
        VFMGR_TRY(auto const places, read_attach_places(body));
        return host_for(places, view, state, who);
    }
    std::string refusal(std::string const& body) {
        auto const host = of(body);
        EXPECT_FALSE(host) << *host;
        return host ? "" : std::string(code(host.error().problem)) + ": " + host.error().detail;
    }
};

TEST_F(HostFor, IsTheOneThatHasTheVm) {
    EXPECT_EQ(of(R"({"vm": "a"})"), "h1");
    EXPECT_EQ(of(R"({"vm": "uuid-b"})"), "h2");
    EXPECT_EQ(of(R"({"attachments": [{"vm": "b"}, {"vm": "b"}]})"), "h2");
    EXPECT_THAT(refusal(R"({"vm": "none"})"), HasSubstr("not_found: no host of the fleet has VM"));
    EXPECT_THAT(refusal(R"({"vm": "both"})"),
                HasSubstr("conflict: 2 hosts have VM 'both': h1, h2"));
    EXPECT_EQ(of(R"({"vm": "both", "host": "h2"})"), "h2");
    EXPECT_THAT(refusal(R"({"attachments": [{"vm": "a"}, {"vm": "b"}]})"), HasSubstr("conflict"));
    EXPECT_THAT(refusal(R"({"vm": "a", "host": "h2"})"),
                HasSubstr("host h2, and VM 'a' is on host h1"));
}

TEST_F(HostFor, IsTheOneThatIsNotOff) {
    change([](auto& hosts) { hosts["h1"].record.fenced = Statement{}; });
    EXPECT_EQ(of(R"({"vm": "both"})"), "h2") << "what h1 had may run elsewhere";
    EXPECT_THAT(refusal(R"({"vm": "a"})"), HasSubstr("is fenced"));
}

TEST_F(HostFor, IsThatOfTheReservation) {
    auto reservations = std::make_shared<Records<ReservationRecord>>();
    (*reservations)["job"].record.host = "h1";
    state.reservations = reservations;
    EXPECT_EQ(of(R"({"vm": "a", "reservation": "job"})"), "h1");
    EXPECT_EQ(of(R"({"vm": "both", "reservation": "job"})"), "h1");
    EXPECT_EQ(of(R"({"vm": "both", "reservation": "own"})"), "h2") << "made on the host itself";
    EXPECT_THAT(refusal(R"({"vm": "b", "reservation": "job"})"),
                HasSubstr("reservation job is of host h1, and VM 'b' is on host h2"));
    EXPECT_THAT(refusal(R"({"vm": "a", "reservation": "none"})"), HasSubstr("not_found"));
    EXPECT_EQ(of(R"({"vm": "unheard-of", "reservation": "job"})"), "h1") << "the host says";
}

TEST_F(HostFor, TakesNothingNewWhenItIsCordoned) {
    change([](auto& hosts) { hosts["h2"].record.cordoned = Statement{}; });
    EXPECT_THAT(refusal(R"({"vm": "b"})"), HasSubstr("is cordoned"));
    EXPECT_EQ(of(R"({"vm": "b", "reservation": "own"})"), "h2") << "that was promised before";
    change([](auto& hosts) { hosts["h1"].record.state = FleetHostState::quarantined; });
    EXPECT_THAT(refusal(R"({"vm": "a"})"), HasSubstr("is quarantined"));
}

TEST_F(HostFor, ReadsNoMoreOfABodyThanItNeeds) {
    auto const places = read_attach_places(R"({"host": "h1", "vm": "a", "new": [1]})");
    ASSERT_TRUE(places);
    EXPECT_EQ(places->body, R"({"new":[1],"vm":"a"})");
    EXPECT_FALSE(read_attach_places("[]"));
    EXPECT_FALSE(read_attach_places("{"));
    EXPECT_FALSE(read_attach_places(R"({"host": 7})"));
    EXPECT_THAT(refusal("{}"), HasSubstr("invalid_request"));
    EXPECT_THAT(refusal(R"({"host": "h9"})"), HasSubstr("the fleet has no host 'h9'"));
}

TEST_F(HostFor, HasTheAttachment) {
    EXPECT_EQ(host_of_attachment("3f9c2b1d", view), "h2");
    EXPECT_EQ(host_of_attachment("00000000", view).error().problem, Problem::not_found);
}

TEST_F(HostFor, IsNotFoundByWhatAnotherTenantHas) {
    DesiredTenant blue;
    blue.tenant.name = "blue";
    blue.tenant.vms = {"uuid-b"};
    who.tenant = std::make_shared<DesiredTenant const>(blue);
    EXPECT_EQ(of(R"({"vm": "b"})"), "h2");
    EXPECT_THAT(refusal(R"({"vm": "a"})"), HasSubstr("not_found"));
    EXPECT_THAT(refusal(R"({"vm": "b", "reservation": "own"})"), HasSubstr("not_found"));
}

}  // namespace
}  // namespace vfmgr::fleet
