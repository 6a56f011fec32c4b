// SPDX-License-Identifier: Apache-2.0
// What a fleet lets its host hand out, and what it can't take away.
#include "vfmgr/plan/fleet_identities.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"
#include "vfmgr/plan/choose.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto fleet_id = "33333333-3333-3333-3333-333333333333";

struct FleetIdentities : testing::Test {
    HostView view = host();
    DesiredState goal = desired();
    VfId const vf{pf_address, 0};
    Identities& mine = goal.handed_out.identities;

    FleetIdentities() {
        goal.fleet.emplace().fleet = fleet_id;
        mine.generation = 7;
        mine.macs = {{mac(0x10), mac(0x13)}};
        mine.addresses = {{"train", {{ip("192.168.100.10"), ip("192.168.100.13")}}}};
    }
    [[nodiscard]] Result<MacAddress> chosen() const {
        return choose_mac(view, goal, vf, vm1_uuid, "seed");
    }
    [[nodiscard]] Result<Guid> chosen_guid() const {
        return choose_guid(view, goal, vf, vm1_uuid, "seed");
    }
    [[nodiscard]] Result<void> named(std::uint8_t last) const {
        return check_mac(view, goal, vf, vm1_uuid, mac(last));
    }
    [[nodiscard]] Result<IpAddress> address(std::optional<IpAddress> const& requested = {},
                                            char const* network = "train") const {
        return choose_address(goal, goal.networks.at(network).network, requested);
    }
    void attach(std::string const& id) { goal = with_attachment(goal, view, id, ask()); }
    // The answer to identities of the next generation that `change` makes of those in force.
    template <class Change>
    [[nodiscard]] Result<void> put(Change const& change) const {
        auto wanted = mine;
        wanted.generation = mine.generation.value_or(0) + 1;
        change(wanted);
        return check_identities(goal, wanted);
    }
};

TEST_F(FleetIdentities, AreChosenFromTheRangesAlone) {
    EXPECT_TRUE(mine.macs[0].contains(chosen().value()));
    mine.given_up.macs = {mac(0x10), mac(0x11)};
    mine.claims.macs = {mac(0x12)};
    EXPECT_EQ(chosen(), mac(0x13)) << "claims are for requests that name them";
    mine.claims.macs.push_back(mac(0x13));
    auto const none = chosen().error();
    EXPECT_EQ(none.problem, Problem::limit_exceeded);
    EXPECT_THAT(none.remedy, HasSubstr("give the fleet more of them"));
}

TEST_F(FleetIdentities, OfAKindWithoutRangesThereIsNone) {
    auto const none = chosen_guid().error();
    EXPECT_EQ(none.problem, Problem::limit_exceeded);
    EXPECT_EQ(none.detail,
              std::string("fleet ") + fleet_id + " has given this host no GUIDs to hand out");
    EXPECT_THAT(none.remedy, HasSubstr("PUT /v1/identities"));
    mine.macs.clear();
    EXPECT_THAT(chosen().error().detail, HasSubstr("no MACs to hand out"));
    mine.generation.reset();
    EXPECT_TRUE(chosen() && chosen_guid()) << "of a host in no fleet";
}

TEST_F(FleetIdentities, ARequestNamesThoseOfTheRangesAndTheClaims) {
    EXPECT_TRUE(named(0x10));
    auto const refused = named(0x20).error();
    EXPECT_EQ(refused.problem, Problem::conflict);
    EXPECT_THAT(refused.detail, AllOf(HasSubstr("MAC 02:00:00:00:00:20"), HasSubstr(fleet_id)));
    EXPECT_EQ(for_tenants(refused).detail,
              "MAC 02:00:00:00:00:20 is none that this host may hand out");
    mine.claims.macs = {mac(0x20)};
    EXPECT_TRUE(named(0x20));
}

TEST_F(FleetIdentities, ARequestNamesNoneThatIsGivenUp) {
    mine.given_up.macs = {mac(0x10)};
    EXPECT_EQ(named(0x10).error().problem, Problem::conflict);
    mine.claims.macs = {mac(0x10)};
    EXPECT_TRUE(named(0x10)) << "it came back";
    EXPECT_NE(chosen(), mac(0x10));
}

TEST_F(FleetIdentities, GuidsAreNamedByTheSameRule) {
    auto const check = [&](std::uint64_t guid) { return check_guid(view, goal, vf, Guid{guid}); };
    EXPECT_EQ(check(5).error().problem, Problem::conflict);
    mine.guids = {{Guid{5}, Guid{6}}};
    EXPECT_TRUE(check(5));
    mine.given_up.guids = {Guid{5}};
    EXPECT_FALSE(check(5));
    EXPECT_EQ(chosen_guid(), Guid{6});
    mine.claims.guids = {Guid{5}};
    EXPECT_TRUE(check(5));
}

TEST_F(FleetIdentities, AddressesAreTheFleetsInNetworksThatItLists) {
    EXPECT_EQ(address(), ip("192.168.100.10"));
    EXPECT_EQ(address(ip("192.168.100.50")).error().problem, Problem::conflict);
    mine.claims.addresses = {{"train", ip("192.168.100.50")}};
    EXPECT_TRUE(address(ip("192.168.100.50")));
    mine.given_up.addresses = {{"train", ip("192.168.100.10")}};
    EXPECT_FALSE(address(ip("192.168.100.10")));
    EXPECT_EQ(address(), ip("192.168.100.11"));
    EXPECT_TRUE(address(ip("192.168.50.77"), "plain")) << "it is left to this host";
    EXPECT_TRUE(address({}, "plain"));
}

TEST_F(FleetIdentities, AnEntryWithoutRangesLeavesNoAddress) {
    mine.addresses = {{"train", {}}};
    EXPECT_EQ(address().error().problem, Problem::limit_exceeded);
    EXPECT_THAT(address().error().remedy, HasSubstr("give the fleet more"));
    EXPECT_EQ(address(ip("192.168.100.10")).error().problem, Problem::conflict);
}

TEST_F(FleetIdentities, AnAttachmentIsPlannedWithinThem) {
    auto const planned = plan(view, goal, ask()).value();
    EXPECT_TRUE(mine.macs[0].contains(planned.attachment.settings.mac.value()));
    auto spec = ask();
    spec.settings.mac = mac(0x20);
    EXPECT_EQ(plan(view, goal, spec).error().problem, Problem::conflict);
    spec.settings.mac.reset();
    spec.address = ip("192.168.100.99");
    EXPECT_EQ(plan(view, goal, spec).error().problem, Problem::conflict);
}

TEST_F(FleetIdentities, ASpecThatIsStoredIsNotRefused) {
    PfSpec spec;
    spec.num_vfs = 7;
    spec.free_vfs = {{2, {}}};
    spec.free_vfs[0].settings.mac = mac(0x20);
    EXPECT_EQ(plan_pf(view, goal, pf_address, spec).error().problem, Problem::conflict);
    goal.pfs[pf_address].spec = spec;
    EXPECT_TRUE(plan_pf(view, goal, pf_address, spec));
    spec.free_vfs[0].settings.mac = mac(0x10);
    EXPECT_TRUE(plan_pf(view, goal, pf_address, spec));
}

TEST_F(FleetIdentities, AdoptionTakesWhatTheVmHasAndSaysSo) {
    auto& state = view.kernel.pfs[pf_address].vfs[3];
    state.settings.mac = mac(0x33);
    state.settings.vlan = Vlan{100};
    state.driver = "vfio-pci";
    auto& has = view.hypervisor.vms[vm1_uuid];
    has.live = has.config = {{state.pci, "hostdev0"}};
    auto spec = ask();
    spec.pf.reset();
    spec.adopt = state.pci;
    spec.address = ip("192.168.100.99");
    auto const planned = plan(view, goal, spec);
    ASSERT_TRUE(planned) << planned.error().detail;
    EXPECT_THAT(planned->plan.notes,
                AllOf(Contains(HasSubstr("MAC 02:00:00:00:00:33 is foreign")),
                      Contains(HasSubstr("192.168.100.99 in network train is foreign"))));
    mine.generation.reset();
    EXPECT_THAT(plan(view, goal, spec)->plan.notes, Not(Contains(HasSubstr("foreign"))));
}

TEST_F(FleetIdentities, OfAnEarlierGenerationAreRefused) {
    auto const older = put([](Identities& wanted) { wanted.generation = 6; }).error();
    EXPECT_EQ(older.problem, Problem::precondition_failed);
    EXPECT_THAT(older.detail, AllOf(HasSubstr("generation 7"), HasSubstr("generation 6")));
    auto const none = put([](Identities& wanted) { wanted.generation.reset(); }).error();
    EXPECT_EQ(none.problem, Problem::precondition_failed);
    EXPECT_THAT(none.remedy, HasSubstr("vfctl fleet leave"));
}

TEST_F(FleetIdentities, OfOneGenerationHaveOneContent) {
    EXPECT_TRUE(check_identities(goal, mine)) << "sent again";
    auto const other = put([](Identities& wanted) {
                           wanted.generation = 7;
                           wanted.macs.clear();
                       }).error();
    EXPECT_EQ(other.problem, Problem::conflict);
    EXPECT_TRUE(put([](Identities& wanted) { wanted.macs.clear(); })) << "nothing has one";
}

TEST_F(FleetIdentities, ThoseOfAnAttachmentAreNotTakenAway) {
    attach("aaaa0001");
    auto const shrunk = put([](Identities& wanted) { wanted.macs.clear(); }).error();
    EXPECT_EQ(shrunk.problem, Problem::conflict);
    EXPECT_THAT(shrunk.detail, HasSubstr("attachment aaaa0001 of vm1 has MAC 02:00:00:00:00:1"));
    auto const has = goal.attachments.at("aaaa0001").settings.mac.value();
    EXPECT_FALSE(put([&](Identities& wanted) { wanted.given_up.macs = {has}; }));
    EXPECT_TRUE(put([&](Identities& wanted) {
        wanted.given_up.macs = {has};
        wanted.claims.macs = {has};
    }));
    EXPECT_TRUE(put([&](Identities& wanted) {
        wanted.macs.clear();
        wanted.claims.macs = {has};
    }));
    EXPECT_THAT(put([](Identities& wanted) { wanted.addresses[0].ranges.clear(); }).error().detail,
                HasSubstr("has address 192.168.100.10 in network train"));
    EXPECT_TRUE(put([](Identities& wanted) { wanted.addresses.clear(); })) << "left to the host";
}

TEST_F(FleetIdentities, AClaimInUseIsNotTakenAway) {
    mine.claims.macs = {mac(0x20)};
    auto spec = ask();
    spec.settings.mac = mac(0x20);
    goal = with_attachment(goal, view, "aaaa0001", spec);
    EXPECT_THAT(put([](Identities& wanted) { wanted.claims.macs.clear(); }).error().detail,
                HasSubstr("has MAC 02:00:00:00:00:20"));
}

TEST_F(FleetIdentities, ThoseOfAQuarantinedVfAndOfASpecAreNotTakenAway) {
    attach("aaaa0001");
    auto& quarantine = goal.quarantine[vf];
    quarantine.attachment = goal.attachments.at("aaaa0001");
    goal.attachments.clear();
    auto const taking = [&] { return put([](Identities& wanted) { wanted.macs.clear(); }); };
    EXPECT_THAT(taking().error().detail, HasSubstr("VF 0000:01:00.0/0 in quarantine"));
    goal.quarantine.clear();
    EXPECT_TRUE(taking());
    goal.pfs[pf_address].spec.free_vfs = {{4, {}}};
    goal.pfs[pf_address].spec.free_vfs[0].settings.mac = mac(0x11);
    EXPECT_THAT(taking().error().detail, HasSubstr("the spec of 0000:01:00.0 for its VF 4"));
}

TEST_F(FleetIdentities, WhatAnOperationIsAboutToGiveIsNotTakenAway) {
    VfSpec changing;
    changing.mac = mac(0x11);
    auto wanted = mine;
    wanted.generation = 8;
    wanted.macs.clear();
    EXPECT_TRUE(check_identities(goal, wanted));
    EXPECT_EQ(check_identities(goal, wanted, {changing}).error().problem, Problem::conflict);
}

// A host may have what it had before it joined, and what it adopted.
TEST_F(FleetIdentities, WhatTheFleetNeverGaveIsNotTakenAwayEither) {
    mine = {};
    attach("aaaa0001");
    auto const has = goal.attachments.at("aaaa0001").settings.mac.value();
    auto const first = [](Identities& wanted) { wanted.macs = {{mac(0x10), mac(0x13)}}; };
    EXPECT_TRUE(put(first));
    EXPECT_FALSE(put([&](Identities& wanted) { wanted.given_up.macs = {has}; }));
    mine.generation = 1;
    EXPECT_TRUE(put(first));
}

TEST_F(FleetIdentities, AreTheHostsOwnAgainWithoutTheFleet) {
    mine.claims.macs = {mac(0x20)};
    mine.given_up.macs = {mac(0x10)};
    Identities own;
    own.macs = mine.macs;
    own.addresses = mine.addresses;
    EXPECT_EQ(without_fleet(mine), own);
}

TEST_F(FleetIdentities, AreCountedAsFarAsTheyCanBeChosen) {
    using Of = FreeIdentities::OfNetwork;
    EXPECT_EQ(free_identities(view, goal), (FreeIdentities{4, 0, {Of{"train", 4}}}));
    attach("aaaa0001");
    mine.guids = {{Guid{1}, Guid{UINT64_MAX}}};
    mine.addresses.push_back({"nowhere", {{ip("10.0.0.1"), ip("10.0.0.9")}}});
    EXPECT_EQ(free_identities(view, goal), (FreeIdentities{3, UINT64_MAX, {Of{"train", 3}}}));
    auto const has = goal.attachments.at("aaaa0001").settings.mac.value();
    mine.claims.macs = {has, mac(0x20)};
    view.hypervisor.vms[vm2_uuid].interfaces = {{mac(0x13), "network", {}}};
    mine.given_up.addresses = {{"train", ip("192.168.100.13")}, {"plain", ip("192.168.100.12")}};
    auto const free = free_identities(view, goal).value();
    EXPECT_EQ(free.macs, has == mac(0x13) ? 3U : 2U);
    EXPECT_EQ(free.addresses, (std::vector{Of{"train", 2}}));
    mine.generation.reset();
    EXPECT_FALSE(free_identities(view, goal));
}

TEST_F(FleetIdentities, AddressesOfANetworkAreCountedWithoutThoseOfNoVm) {
    mine.addresses = {{"train", {{ip("192.168.100.0"), ip("192.168.100.255")}}}};
    EXPECT_EQ(free_identities(view, goal)->addresses[0].count, 253U) << "three are no VM's";
    auto& network = goal.networks["train"].network;
    network.prefix = prefix("fd00::/16");
    network.pfs.clear();
    mine.addresses = {{"train", {{ip("fd00::1"), ip("fd00::1:0")}}}};
    EXPECT_EQ(free_identities(view, goal)->addresses[0].count, 0x10000U);
    mine.addresses = {{"train", {{ip("fd00::1"), ip("fd00:1::")}}}};
    EXPECT_EQ(free_identities(view, goal)->addresses[0].count, UINT64_MAX);
}

}  // namespace
}  // namespace vfmgr
