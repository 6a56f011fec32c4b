// SPDX-License-Identifier: Apache-2.0
// A PF that is gone: its attachments end by an admin's command, and never by an observation.
#include "vfmgr/plan/pf_standing.hpp"

#include <gmock/gmock.h>

#include "example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct GonePlanTest : testing::Test {
    HostView view = host();
    DesiredState goal = desired();

    GonePlanTest() {
        view.kernel.complete = true;
        goal.identities[pf_address] = view.kernel.pfs.at(pf_address).info.identity;
        goal = with_attachment(goal, view, "aaaa0001", ask());
        auto second = ask("vm2");
        second.vf = 5;
        goal = with_attachment(goal, view, "aaaa0002", second);
        give(vm1_uuid, "aaaa0001");
        give(vm2_uuid, "aaaa0002");
    }
    void give(char const* uuid, std::string const& id) {
        VmHostdev const hostdev{goal.attachments.at(id).vf_pci, hostdev_alias(id)};
        view.hypervisor.vms[uuid].live = {hostdev};
        view.hypervisor.vms[uuid].config = {hostdev};
    }
    void take_card_out() { view.kernel.pfs.clear(); }
    void quarantine_all() {
        for (auto const& [id, attachment] : goal.attachments)
            goal.quarantine[attachment.vf] = {attachment.vf, attachment, "its PF is gone", {}, {}};
        goal.attachments.clear();
    }
    [[nodiscard]] Error refusal() const {
        auto const plan = plan_gone(view, goal, pf_address);
        return plan ? Error{} : plan.error();
    }
    [[nodiscard]] Error confirm_refusal() const {
        auto const plan = plan_gone_confirmed(view, goal, pf_address);
        return plan ? Error{} : plan.error();
    }
};

TEST_F(GonePlanTest, ItsVfsGoOutOfTheVmsByTheirAlias) {
    take_card_out();
    view.hypervisor.vms[vm1_uuid].live.clear();  // this guest let it go
    // By now another device is at that address, and an admin attached it to a VM.
    view.hypervisor.vms[vm1_uuid].live.push_back({goal.attachments.at("aaaa0001").vf_pci, "mine"});
    auto const plan = plan_gone(view, goal, pf_address).value();
    auto const detached = steps_of<DetachHostdev>(plan);
    ASSERT_EQ(detached.size(), 2U);
    EXPECT_EQ(plan.steps.size(), 2U) << "nothing of the kernel";
    EXPECT_EQ(detached[0].attachment, "aaaa0001");
    EXPECT_FALSE(detached[0].live) << "a device of somebody else";
    EXPECT_TRUE(detached[0].config);
    EXPECT_TRUE(detached[1].live);
    EXPECT_TRUE(detached[1].config);
    EXPECT_EQ(plan.blast_radius.size(), 2U);
    EXPECT_THAT(plan.notes.front(), HasSubstr("stays reserved"));
    EXPECT_THAT(plan.notes.back(), HasSubstr("vfctl pf confirm-gone 0000:01:00.0"));
}

TEST_F(GonePlanTest, IsRefusedOfWhatIsOnTheHost) {
    EXPECT_EQ(refusal().problem, Problem::conflict);
    EXPECT_THAT(refusal().detail, HasSubstr("0000:01:00.0 is on this host"));
    view.kernel.pfs.at(pf_address).info.driver.clear();
    EXPECT_THAT(refusal().detail, HasSubstr("without a driver"));
    view.kernel.pfs.at(pf_address).stale = true;
    EXPECT_EQ(refusal().problem, Problem::unavailable) << "it can't be read";
    view.kernel.pfs.at(pf_address).stale = false;
    view.kernel.pfs.at(pf_address).stuck = "its removal hangs";
    EXPECT_EQ(refusal().problem, Problem::unavailable);
    take_card_out();
    EXPECT_EQ(refusal().detail, "");
    view.kernel.complete = false;
    EXPECT_EQ(refusal().problem, Problem::unavailable) << "nobody looked everywhere";
}

TEST_F(GonePlanTest, IsRefusedOfWhatIsElsewhere) {
    auto moved = view.kernel.pfs.extract(pf_address);
    moved.mapped().info.pci = {0, 2, 0, 0};
    view.kernel.pfs[{0, 2, 0, 0}] = moved.mapped();
    EXPECT_EQ(refusal().problem, Problem::pf_renumbered);
    EXPECT_THAT(refusal().remedy, HasSubstr("vfctl pf rekey 0000:01:00.0 0000:02:00.0"));
}

TEST_F(GonePlanTest, AnotherCardInItsPlaceMakesItNoLessGone) {
    view.kernel.pfs.at(pf_address).info.identity.mac = MacAddress{{2, 0, 0, 0, 0, 9}};
    EXPECT_EQ(refusal().detail, "");
}

TEST_F(GonePlanTest, IsRefusedWhereNothingIsKeptAndWhereLibvirtIsDown) {
    take_card_out();
    EXPECT_EQ(plan_gone(view, goal, {0, 9, 0, 0}).error().problem, Problem::not_found);
    view.hypervisor.stale = true;
    EXPECT_EQ(refusal().problem, Problem::unavailable);
    EXPECT_EQ(confirm_refusal().problem, Problem::unavailable);
}

TEST_F(GonePlanTest, IsConfirmedOnlyWhenNothingIsAttachedOfItAndNoXmlNamesIt) {
    take_card_out();
    EXPECT_THAT(confirm_refusal().remedy, HasSubstr("vfctl pf gone"));
    quarantine_all();
    EXPECT_EQ(confirm_refusal().problem, Problem::vf_in_use);
    for (auto& [uuid, vm] : view.hypervisor.vms) vm.live.clear();
    EXPECT_EQ(confirm_refusal().problem, Problem::vf_in_use) << "in the persistent XML";
    for (auto& [uuid, vm] : view.hypervisor.vms) vm.config.clear();
    auto const plan = plan_gone_confirmed(view, goal, pf_address).value();
    EXPECT_THAT(plan.steps, IsEmpty());
    EXPECT_THAT(plan.blast_radius, ElementsAre(HasSubstr("vm1 may be assigned to another VF"),
                                               HasSubstr("vm2 may be assigned to another VF"),
                                               HasSubstr("is deleted")));
    view = host();
    view.kernel.complete = true;
    EXPECT_EQ(confirm_refusal().problem, Problem::conflict) << "it is back";
}

TEST_F(GonePlanTest, AddressesStayReservedMeanwhile) {
    auto const had = goal.attachments.at("aaaa0001");
    quarantine_all();
    view.hypervisor.vms[vm1_uuid].live.clear();
    auto other = ask("vm2");
    other.vf = 3;
    other.settings.mac = had.settings.mac;
    EXPECT_EQ(plan(view, goal, other).error().problem, Problem::conflict);
    other.settings.mac.reset();
    EXPECT_NE(plan(view, goal, other)->attachment.address, had.address);
}

}  // namespace
}  // namespace vfmgr
