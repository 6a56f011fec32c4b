// SPDX-License-Identifier: Apache-2.0
// Another device at a PF's address, the PF at another address, a PF without its driver, and no PF.
#include "vfmgr/plan/pf_standing.hpp"

#include <gmock/gmock.h>

#include "example_host.hpp"
#include "tests/fakes/driver_model.hpp"
#include "vfmgr/plan/drift.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

PciAddress const other{0, 2, 0, 0};
MacAddress const strange{{0x52, 0x54, 0, 0xbb, 0, 9}};

struct PfStandingTest : testing::Test {
    HostView view = host();
    DesiredState goal = desired();

    PfStandingTest() {
        view.kernel.complete = true;
        goal.identities[pf_address] = view.kernel.pfs.at(pf_address).info.identity;
        goal = with_attachment(goal, view, "aaaa0001", ask());
    }
    // The PF answers at `to`; nothing is left where it was.
    void move_pf(PciAddress const& to) {
        auto state = view.kernel.pfs.extract(pf_address).mapped();
        state.info.pci = to;
        for (auto& interface : state.interfaces) interface.id.pf = to;
        view.kernel.pfs[to] = std::move(state);
    }
    void put_another_in_its_place() {
        view.kernel.pfs[pf_address] = pf(7);
        view.kernel.pfs[pf_address].info.identity.mac = strange;
    }
    [[nodiscard]] PfStanding standing() const { return standing_of(view.kernel, goal, pf_address); }
    [[nodiscard]] Error refusal() const {
        return wrong_standing(standing(), pf_address).value_or(Error{});
    }
};

TEST_F(PfStandingTest, IsHereAndProvedByWhatWasKept) {
    EXPECT_EQ(standing().is, Standing::here);
    EXPECT_TRUE(standing().proved);
    EXPECT_TRUE(require_same_pf(view, goal, pf_address));
    view.kernel.pfs.at(pf_address).info.identity = {};
    EXPECT_EQ(standing().is, Standing::here) << "nothing says that it is another";
    EXPECT_FALSE(standing().proved);
    goal.identities[pf_address].serial = "A";
    view.kernel.pfs.at(pf_address).info.identity.serial = "A";
    EXPECT_TRUE(standing().proved) << "the card, where it was";
}

TEST_F(PfStandingTest, IsRenumberedWhereAnotherDeviceAnswers) {
    put_another_in_its_place();
    EXPECT_EQ(standing().is, Standing::renumbered);
    EXPECT_EQ(standing().other->mac, strange);
    EXPECT_EQ(refusal().problem, Problem::pf_renumbered);
    EXPECT_THAT(refusal().detail, AllOf(HasSubstr("0000:01:00.0"), HasSubstr(to_string(strange)),
                                        HasSubstr("not on this host")));
    EXPECT_THAT(refusal().remedy, AllOf(HasSubstr("vfctl pf rekey 0000:01:00.0 0000:01:00.0"),
                                        HasSubstr("vfctl pf gone 0000:01:00.0")));
}

TEST_F(PfStandingTest, IsRenumberedWhereItAnswersElsewhere) {
    move_pf(other);
    EXPECT_EQ(standing().is, Standing::renumbered);
    EXPECT_EQ(standing().now_at, other);
    EXPECT_THAT(refusal().remedy, HasSubstr("vfctl pf rekey 0000:01:00.0 0000:02:00.0"));
    EXPECT_THAT(require_same_pf(view, goal, other).error().remedy,
                HasSubstr("vfctl pf rekey 0000:01:00.0 0000:02:00.0"))
        << "and nobody manages it twice";
    put_another_in_its_place();
    EXPECT_EQ(standing().now_at, other);
    EXPECT_THAT(refusal().detail, AllOf(HasSubstr("0000:02:00.0"), HasSubstr(to_string(strange))));
}

TEST_F(PfStandingTest, IsRenumberedAlsoWhereWhatIsThereCantBeTold) {
    move_pf(other);
    put_another_in_its_place();
    view.kernel.pfs.at(pf_address).info.identity = {};
    EXPECT_EQ(standing().is, Standing::renumbered);
    EXPECT_EQ(standing().now_at, other);
}

TEST_F(PfStandingTest, IsThereWithoutItsDriver) {
    auto& info = view.kernel.pfs.at(pf_address).info;
    info.driver.clear();
    info.ifname.clear();
    info.identity = {};
    EXPECT_EQ(standing().is, Standing::driver_unbound);
    EXPECT_EQ(wrong_standing(standing(), pf_address), std::nullopt);
    EXPECT_FALSE(standing().proved);
}

TEST_F(PfStandingTest, IsGoneOnlyFromAHostThatWasLookedAtAsAWhole) {
    view.kernel.pfs.clear();
    EXPECT_EQ(standing().is, Standing::gone);
    EXPECT_EQ(refusal().problem, Problem::pf_gone);
    EXPECT_THAT(refusal().remedy, HasSubstr("vfctl pf gone 0000:01:00.0"));
    view.kernel.complete = false;
    EXPECT_EQ(standing().is, Standing::unknown);
    EXPECT_EQ(wrong_standing(standing(), pf_address), std::nullopt);
    view.kernel.complete = true;
    EXPECT_TRUE(require_same_pf(view, goal, other))
        << "nothing is kept of that: it was never there";
}

TEST_F(PfStandingTest, IsUnknownWhileItCantBeRead) {
    view.kernel.pfs.at(pf_address).stale = true;
    view.kernel.pfs.at(pf_address).info.identity = {};
    EXPECT_EQ(standing().is, Standing::unknown);
    view.kernel.pfs.at(pf_address).stale = false;
    view.kernel.pfs.at(pf_address).stuck = "a removal hangs";
    EXPECT_EQ(standing().is, Standing::unknown) << "it is leaving, and may come back";
    EXPECT_EQ(wrong_standing(standing(), pf_address), std::nullopt);
}

TEST_F(PfStandingTest, EveryPlanIsRefusedWhileAnotherDeviceIsThere) {
    put_another_in_its_place();
    auto const attachment = goal.attachments.at("aaaa0001");
    goal.pfs.at(pf_address).spec.mode = PfMode::enforce;
    auto const problem_of = [](auto const& plan) {
        return plan ? Problem::internal : plan.error().problem;
    };
    EXPECT_EQ(problem_of(plan_pf(view, goal, pf_address, {})), Problem::pf_renumbered);
    EXPECT_EQ(problem_of(plan_attachment(view, goal, "aaaa0002", ask("vm2"), "seed")),
              Problem::pf_renumbered);
    EXPECT_EQ(problem_of(plan_detach(view, goal, attachment)), Problem::pf_renumbered);
    EXPECT_EQ(problem_of(plan_restore(view, goal, pf_address)), Problem::pf_renumbered);
    EXPECT_EQ(problem_of(plan_repair(view, goal, pf_address)), Problem::pf_renumbered);
}

TEST_F(PfStandingTest, RestoreBindsNothingOfWhatItCantTell) {
    ASSERT_FALSE(plan_restore(view, goal, pf_address)->steps.empty());
    view.kernel.pfs.at(pf_address).info.identity = {};
    auto const refused = plan_restore(view, goal, pf_address);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unavailable);
    goal.identities.clear();
    EXPECT_TRUE(plan_restore(view, goal, pf_address)) << "a store of an earlier form knows none";
}

TEST_F(PfStandingTest, IsDriftWithItsRemedy) {
    put_another_in_its_place();
    auto const drift = find_drift(view, goal);
    ASSERT_EQ(drift.size(), 1U) << "another device is compared with nothing";
    EXPECT_EQ(drift[0].what, "device");
    EXPECT_THAT(drift[0].sentence, HasSubstr("vfctl pf rekey"));
    EXPECT_TRUE(can_be_judged(view, goal, pf_address));
    view.kernel.pfs.clear();
    ASSERT_EQ(find_drift(view, goal).size(), 1U);
    EXPECT_EQ(find_drift(view, goal)[0].found, "pf_gone");
    EXPECT_TRUE(can_be_judged(view, goal, pf_address));
    view.kernel.complete = false;
    EXPECT_THAT(find_drift(view, goal), IsEmpty());
}

TEST_F(PfStandingTest, ADriverThatIsUnboundIsDrift) {
    auto& state = view.kernel.pfs.at(pf_address);
    state.info.driver.clear();
    auto const drift = find_drift(view, goal);
    ASSERT_FALSE(drift.empty());
    EXPECT_EQ(drift[0].what, "driver");
    EXPECT_THAT(drift[0].sentence, HasSubstr("drivers_probe"));
}

TEST_F(PfStandingTest, IdentitiesAreKeptOfWhatIsReadAndOnlyOnce) {
    EXPECT_EQ(kept_pfs(goal), std::vector{pf_address});
    EXPECT_EQ(identity_to_keep(view.kernel, goal, pf_address), std::nullopt) << "it is known";
    goal.identities.clear();
    auto const observed = view.kernel.pfs.at(pf_address).info.identity;
    EXPECT_EQ(identity_to_keep(view.kernel, goal, pf_address), observed);
    view.kernel.pfs.at(pf_address).stale = true;
    EXPECT_EQ(identity_to_keep(view.kernel, goal, pf_address), std::nullopt);
    view.kernel.pfs.at(pf_address).stale = false;
    goal.identities[other] = observed;
    EXPECT_EQ(identity_to_keep(view.kernel, goal, pf_address), std::nullopt)
        << "what is known as another PF that moved here is not this one";
    goal.identities = {{pf_address, {strange, {}, {}}}};
    EXPECT_EQ(identity_to_keep(view.kernel, goal, pf_address), std::nullopt) << "never replaced";
}

// A PF that is gone may come back with its VFs' settings.
TEST_F(PfStandingTest, AddressAndMacOfAQuarantineAreReserved) {
    auto const attachment = goal.attachments.at("aaaa0001");
    goal.attachments.clear();
    goal.quarantine[attachment.vf] =
        Quarantine{attachment.vf, attachment, "its PF is gone", {}, {}};
    auto const next = plan(view, goal, ask("vm2")).value().attachment;
    EXPECT_NE(next.address, attachment.address);
    EXPECT_NE(next.vf, attachment.vf);
    auto spec = ask("vm2");
    spec.settings.mac = attachment.settings.mac;
    EXPECT_EQ(plan(view, goal, spec).error().problem, Problem::conflict);
    spec = ask("vm2");
    spec.address = attachment.address;
    EXPECT_EQ(plan(view, goal, spec).error().problem, Problem::conflict);
}

}  // namespace
}  // namespace vfmgr
