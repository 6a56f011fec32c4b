// SPDX-License-Identifier: Apache-2.0
// What a tenant sees of a host, and which tenants a host may have.
#include "vfmgr/plan/tenants.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"
#include "vfmgr/plan/select.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Seen : testing::Test {
    HostView view = host();
    DesiredState goal = example::desired();
    Tenant blue;

    Seen() {
        blue.name = "blue";
        goal = with_attachment(goal, view, "0000000a", ask());
        blue.vms = {goal.attachments.at("0000000a").vm_uuid};
        blue.networks = {"train"};
    }
    // An attachment of another VM, on the next VF.
    void attach_another() {
        auto other = goal.attachments.at("0000000a");
        other.id = "0000000b";
        other.vm = "other";
        other.vm_uuid = "99999999-9999-9999-9999-999999999999";
        other.vf.index = static_cast<std::uint16_t>(other.vf.index + 1);
        goal.attachments["0000000b"] = other;
        VmInfo vm;
        vm.uuid = other.vm_uuid;
        vm.name = other.vm;
        view.hypervisor.vms[vm.uuid] = vm;
    }
    [[nodiscard]] DesiredState own() const { return seen_by(blue, goal); }
};

TEST_F(Seen, AttachmentsAndVmsAreItsOwn) {
    attach_another();
    auto const seen = own();
    EXPECT_EQ(seen.attachments.size(), 1U);
    auto const observed = seen_by(blue, view, seen);
    ASSERT_THAT(observed.hypervisor.vms, testing::SizeIs(1));
    EXPECT_EQ(observed.hypervisor.vms.begin()->first, blue.vms.front());
    ASSERT_THAT(observed.kernel.pfs, testing::SizeIs(1));
    auto const& pf = observed.kernel.pfs.begin()->second;
    EXPECT_THAT(pf.vfs, ElementsAre(testing::Field(&VfState::index, 0)));
    EXPECT_THAT(pf.interfaces, IsEmpty());
    EXPECT_TRUE(pf.info.ifname.empty());
}

TEST_F(Seen, NetworksAndPoolsAreThoseItMayUseWithoutTheHosts) {
    goal.networks["secret"] = goal.networks.at("train");
    goal.pools["fast"].pool.name = "fast";
    goal.pools["fast"].pool.select.pfs = {{pf_address}};
    goal.pools["fast"].pool.defaults.network = "secret";
    goal.pools["other"].pool.name = "other";
    blue.pools = {"fast", "none yet"};
    auto const seen = own();
    ASSERT_THAT(seen.networks, testing::SizeIs(1));
    EXPECT_THAT(seen.networks.at("train").network.pfs, IsEmpty());
    ASSERT_THAT(seen.pools, testing::SizeIs(1));
    EXPECT_EQ(seen.pools.at("fast").pool.select, PoolSelectors{});
    EXPECT_EQ(seen.pools.at("fast").pool.defaults.network, std::nullopt);
    EXPECT_THAT(seen.pfs, IsEmpty());
    EXPECT_EQ(seen.handed_out, DesiredIdentities{});
}

TEST_F(Seen, ReservationsAreThoseMadeForIt) {
    for (auto const* const name : {"blue-a", "red-a", "none"}) {
        Reservation one{name, {}, {}, "token:1", {}, {}};
        if (tenant_in(name) != "") one.tenant = std::string(tenant_in(name));
        goal.reservations[name] = one;
    }
    ASSERT_THAT(own().reservations, testing::SizeIs(1));
    EXPECT_TRUE(own().reservations.contains("blue-a"));
}

TEST_F(Seen, PlansAndRunsHaveNothingOfOthers) {
    auto const planned = plan(view, example::desired(), ask()).value();
    ASSERT_THAT(planned.plan.notes, Not(IsEmpty()));
    auto const seen = for_tenants(planned.plan);
    EXPECT_THAT(seen.notes, IsEmpty());
    ASSERT_THAT(seen.steps, testing::SizeIs(1));
    EXPECT_TRUE(as<AttachHostdev>(seen.steps.front()));
    Verification run;
    run.warnings = {{"rdma_write", "slower than this VF's last runs", "look"}};
    EXPECT_THAT(for_tenants(run).warnings, IsEmpty());
}

TEST_F(Seen, AnErrorSaysInGeneralWhatWentWrongUnlessItIsWrittenForTenants) {
    Error const error{
        Problem::conflict, "VM other has it", "detach other", {{"write", "EBUSY", "busy"}}, {}, 7};
    EXPECT_EQ(for_tenants(error).detail, title(Problem::conflict));
    EXPECT_THAT(for_tenants(error).remedy, HasSubstr("ask an admin"));
    EXPECT_THAT(for_tenants(error).causes, IsEmpty());
    EXPECT_EQ(for_tenants(error).revision, std::nullopt);
    auto const discreet = for_tenants(discreetly(error, "it is in use", "choose another"));
    EXPECT_EQ(discreet.detail, "it is in use");
    EXPECT_EQ(discreet.remedy, "choose another");
    EXPECT_THAT(discreet.causes, IsEmpty());
}

TEST_F(Seen, WhoHasAnAddressIsNotSaid) {
    attach_another();
    auto spec = ask();
    spec.address = goal.attachments.at("0000000b").address;
    auto const refused = plan(view, goal, spec).error();
    EXPECT_THAT(refused.detail, HasSubstr("0000000b"));
    EXPECT_EQ(for_tenants(refused).detail,
              to_string(*spec.address) + " is already in use in network train");
    spec = ask();
    spec.settings.mac = goal.attachments.at("0000000b").settings.mac;
    EXPECT_EQ(for_tenants(plan(view, goal, spec).error()).detail,
              "MAC " + to_string(*spec.settings.mac) + " is already in use on this host");
}

TEST(Tenants, AVmHasOneAtMost) {
    DesiredState goal;
    goal.tenants["red"] = {{"red", {"uuid"}, {}, {}}, 1};
    Tenant const blue{"blue", {"uuid"}, {"far"}, {}};
    EXPECT_EQ(plan_tenant(goal, blue).error().detail, "VM uuid is tenant red's");
    EXPECT_TRUE(plan_tenant(goal, goal.tenants["red"].tenant));
    goal.tenants.clear();
    EXPECT_THAT(plan_tenant(goal, blue).value().notes, ElementsAre("there is no network far yet"));
    EXPECT_EQ(tenant_of(goal.tenants, "uuid"), nullptr);
}

TEST(Tenants, OneWithAReservationStays) {
    DesiredState goal;
    EXPECT_EQ(plan_tenant_removal(goal, "red").error().problem, Problem::not_found);
    goal.tenants["red"] = {};
    EXPECT_TRUE(plan_tenant_removal(goal, "red"));
    goal.reservations["red-a"].tenant = "red";
    EXPECT_EQ(plan_tenant_removal(goal, "red").error().problem, Problem::conflict);
}

TEST(Tenants, NamesOfReservationsNameTheirTenant) {
    EXPECT_EQ(tenant_in("blue-train-1"), "blue");
    EXPECT_EQ(tenant_in("blue"), "");
    EXPECT_EQ(tenant_in("-x"), "");
}

TEST(Tenants, WhatTheyMaySet) {
    Tenant tenant;
    EXPECT_TRUE(may_set(tenant, "address"));
    EXPECT_FALSE(may_set(tenant, "trust"));
    tenant.fields = {"trust"};
    EXPECT_TRUE(may_set(tenant, "trust"));
    EXPECT_FALSE(may_set(tenant, "address"));
}

}  // namespace
}  // namespace vfmgr
