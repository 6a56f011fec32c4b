// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"
#include "vfmgr/plan/firmware.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

FirmwareSettings vfs(std::uint16_t count) {
    FirmwareSettings settings;
    settings.num_of_vfs = count;
    return settings;
}

// Two ports, the first of which is the example's PF; 8 VFs each.
FirmwareCard card() {
    FirmwareCard value;
    value.pci = pf_address;
    value.functions = {pf_address, {0, 1, 0, 1}};
    value.device_type = "ConnectX6DX";
    value.tool = FirmwareTool{"mstconfig", "4.21.0"};
    value.by_default = FirmwareSettings{false, 0, PortType::ib, PortType::ib, false};
    value.current = FirmwareSettings{true, 8, PortType::eth, PortType::eth, false};
    value.next = value.current;
    value.boot_id = "boot 1";
    return value;
}

Result<FirmwarePlan> plan_of(FirmwareSettings const& requested, DesiredState const& now = desired(),
                             HostView const& view = host(), FirmwareCard const& of = card()) {
    return plan_firmware(view, now, of, requested);
}

TEST(PlanFirmware, SetsWhatDiffersAndUndoesIt) {
    auto requested = vfs(16);
    requested.sriov_en = true;
    auto const planned = plan_of(requested).value();
    EXPECT_EQ(planned.plan.steps, (std::vector<Step>{SetFirmware{pf_address, vfs(16), vfs(8)}}));
    EXPECT_EQ(inverse(planned.plan.steps[0], {}),
              (std::vector<Step>{SetFirmware{pf_address, vfs(8), vfs(16)}}));
    EXPECT_EQ(sentence(planned.plan.steps[0]),
              "set in the firmware of 0000:01:00.0: NUM_OF_VFS=16");
    EXPECT_EQ(planned.tries.settings, vfs(16));
    EXPECT_EQ(planned.tries.boots.at("NUM_OF_VFS"), std::vector<std::string>{"boot 1"});
    ASSERT_EQ(planned.plan.blast_radius.size(), 1U);
    EXPECT_THAT(planned.plan.blast_radius[0], HasSubstr("enp1s0 and 0000:01:00.1"));
    ASSERT_EQ(planned.plan.notes.size(), 1U);
    EXPECT_THAT(planned.plan.notes[0], HasSubstr("one reboot serves all cards"));
}

TEST(PlanFirmware, DoesNothingWhereItHoldsAlready) {
    auto const planned = plan_of(vfs(8)).value();
    EXPECT_EQ(planned.plan, Plan{});
    EXPECT_EQ(planned.tries, FirmwareTries{});
}

TEST(PlanFirmware, WhatTheCardHasForItsNextResetIsOnlyPending) {
    auto waiting = card();
    waiting.next->num_of_vfs = 16;
    auto const planned = plan_of(vfs(16), desired(), host(), waiting).value();
    EXPECT_THAT(planned.plan.steps, IsEmpty());
    EXPECT_EQ(planned.plan.notes.size(), 1U);
    EXPECT_EQ(planned.tries.settings, vfs(16)) << "it was asked for, and does not hold";
}

TEST(PlanFirmware, NotesThatACardWithoutVfsOffersNone) {
    auto without = card();
    without.current = without.next = FirmwareSettings{false, 0, {}, {}, {}};
    FirmwareSettings requested;
    requested.sriov_en = true;
    EXPECT_THAT(plan_of(requested, desired(), host(), without).value().plan.notes,
                testing::Contains(HasSubstr("NUM_OF_VFS is 0")));
}

// SR-IOV is off in its firmware, so the kernel shows no PF, and it can't be managed.
TEST(PlanFirmware, ACardThatIsNoPfYetCanBeMadeOne) {
    auto off = card();
    off.pci = {0, 9, 0, 0};
    off.functions = {off.pci};
    off.current = off.next = FirmwareSettings{false, 0, {}, {}, {}};
    auto requested = vfs(8);
    requested.sriov_en = true;
    EXPECT_EQ(plan_of(requested, {}, host(), off).value().plan.steps.size(), 1U);
}

TEST(PlanFirmware, RefusesWhileAVfOfTheCardIsAttached) {
    auto const attached = with_attachment(desired(), host(), "aaaa0001", ask());
    auto const error = plan_of(vfs(16), attached).error();
    EXPECT_EQ(error.problem, Problem::vf_in_use);
    EXPECT_THAT(error.detail, HasSubstr("VF 0 of enp1s0 is attached to vm1 (attachment aaaa0001)"));
    EXPECT_THAT(error.remedy, HasSubstr("vfctl detach VM"));
}

TEST(PlanFirmware, RefusesWhileAVfOfTheOtherPortIsHeld) {
    auto view = host();
    auto const other = PciAddress{0, 1, 0, 1};
    view.kernel.pfs[other] = pf(1);
    view.kernel.pfs[other].info.pci = other;
    view.kernel.pfs[other].info.ifname = "enp1s1";
    view.kernel.pfs[other].vfs[0].pci = {0, 1, 0x11, 0};
    view.kernel.pfs[other].vfs[0].holders = {{812, "qemu-system-x86"}};
    auto now = desired();
    now.pfs[other].spec.mode = PfMode::manage;
    auto const error = plan_of(vfs(16), now, view).error();
    EXPECT_EQ(error.problem, Problem::vf_in_use);
    EXPECT_THAT(error.detail, HasSubstr("VF 0 of enp1s1 is held open by qemu-system-x86"));
}

TEST(PlanFirmware, NotAskedMeansInUse) {
    auto view = host();
    view.hypervisor.stale = true;
    view.hypervisor.stale_reason = "no libvirtd";
    EXPECT_EQ(plan_of(vfs(16), desired(), view).error().problem, Problem::unavailable);
    view = host();
    view.kernel.pfs[pf_address].stale = true;
    EXPECT_EQ(plan_of(vfs(16), desired(), view).error().problem, Problem::unavailable);
    view = host();
    view.kernel.pfs[pf_address].stuck = "bash (pid 812) hangs";
    EXPECT_EQ(plan_of(vfs(16), desired(), view).error().problem, Problem::pf_stuck);
}

TEST(PlanFirmware, RefusesAPortThatIsOnlyObserved) {
    auto const unmanaged = plan_of(vfs(16), {}).error();
    EXPECT_EQ(unmanaged.problem, Problem::conflict);
    EXPECT_THAT(unmanaged.remedy, HasSubstr("vfctl pf set enp1s0 --mode manage"));
    auto now = desired();
    now.pfs[pf_address].spec.mode = PfMode::observe;
    EXPECT_EQ(plan_of(vfs(16), now).error().problem, Problem::conflict);
}

TEST(PlanFirmware, RefusesASettingThatTheCardDoesNotHave) {
    auto single = card();
    single.next->link_type_p2.reset();
    single.next->ats_enabled.reset();
    FirmwareSettings requested;
    requested.link_type_p2 = PortType::ib;
    auto const port = plan_of(requested, desired(), host(), single).error();
    EXPECT_EQ(port.problem, Problem::unsupported);
    EXPECT_THAT(port.detail,
                HasSubstr("0000:01:00.0 (ConnectX6DX) has no LINK_TYPE_P2: it has one"));
    requested = {};
    requested.ats_enabled = true;
    EXPECT_THAT(plan_of(requested, desired(), host(), single).error().detail,
                HasSubstr("has no ATS_ENABLED"));
    single.counts_per_port = true;
    EXPECT_THAT(plan_of(vfs(4), desired(), host(), single).error().detail,
                HasSubstr("PF_NUM_OF_VF_VALID"));
}

TEST(PlanFirmware, RefusesFewerVfsThanAreWanted) {
    auto const fewer = plan_of(vfs(4)).error();
    EXPECT_EQ(fewer.problem, Problem::conflict);
    EXPECT_EQ(fewer.detail,
              "enp1s0 is configured to have 7 VFs, but with NUM_OF_VFS=4 it could have 4");
    FirmwareSettings off;
    off.sriov_en = false;
    EXPECT_THAT(plan_of(off).error().detail, HasSubstr("it could have 0"));
}

TEST(PlanFirmware, SaysWhyTheCardCouldNotBeRead) {
    auto locked = card();
    locked.next.reset();
    locked.problem = Error{Problem::unsupported, "the kernel is locked down", "use the set-up"};
    EXPECT_EQ(plan_of(vfs(16), desired(), host(), locked).error(), *locked.problem);
}

// Requests 16 VFs in each boot, from a card that stays at 8.
FirmwareTries after_boots(std::vector<std::string> const& boots, bool keeps_next) {
    auto now = desired();
    for (auto const& boot : boots) {
        auto stubborn = card();
        stubborn.boot_id = boot;
        if (keeps_next) stubborn.next->num_of_vfs = 16;
        now.firmware_tries[pf_address] = plan_of(vfs(16), now, host(), stubborn).value().tries;
    }
    return now.firmware_tries[pf_address];
}

TEST(PlanFirmware, ACardIsNotAskedAThirdTime) {
    for (bool const keeps_next : {false, true}) {
        auto now = desired();
        now.firmware_tries[pf_address] = after_boots({"boot 1", "boot 1", "boot 2"}, keeps_next);
        auto third = card();
        third.boot_id = "boot 3";
        if (keeps_next) third.next->num_of_vfs = 16;
        auto const error = plan_of(vfs(16), now, host(), third).error();
        EXPECT_EQ(error.problem, Problem::conflict) << keeps_next;
        EXPECT_EQ(error.detail,
                  "0000:01:00.0 (ConnectX6DX) did not apply NUM_OF_VFS=16 in 2 boots; vfmgr does "
                  "not try a third time");
        EXPECT_THAT(error.remedy, HasSubstr("power-cycle the host"));
        // Together with another setting, or again in the same boot: neither counts.
        auto both = vfs(16);
        both.ats_enabled = true;
        EXPECT_FALSE(plan_of(both, now, host(), third));
    }
}

TEST(PlanFirmware, ASecondTimeIsAllowedAndSoAreOtherValues) {
    auto now = desired();
    now.firmware_tries[pf_address] = after_boots({"boot 1"}, false);
    auto again = card();
    again.boot_id = "boot 2";
    EXPECT_TRUE(plan_of(vfs(16), now, host(), again));
    now.firmware_tries[pf_address] = after_boots({"boot 1", "boot 2"}, false);
    again.boot_id = "boot 3";
    auto const other = plan_of(vfs(12), now, host(), again).value();
    EXPECT_EQ(other.tries.settings, vfs(12));
    EXPECT_EQ(other.tries.boots.at("NUM_OF_VFS"), std::vector<std::string>{"boot 3"});
    FirmwareSettings ats;
    ats.ats_enabled = true;
    EXPECT_EQ(plan_of(ats, now, host(), again).value().tries.boots.at("NUM_OF_VFS").size(), 2U)
        << "the card's other tries are no matter of this one, and are not forgotten";
}

TEST(PlanFirmware, WhatHoldsIsForgotten) {
    auto now = desired();
    now.firmware_tries[pf_address] = after_boots({"boot 1", "boot 2"}, false);
    auto taken = card();
    taken.boot_id = "boot 3";
    EXPECT_EQ(plan_of(vfs(8), now, host(), taken).value().tries, FirmwareTries{})
        << "asking for the current values forgets the tries";
    taken.current = taken.next = FirmwareSettings{true, 16, PortType::eth, PortType::eth, false};
    EXPECT_EQ(plan_of(vfs(16), now, host(), taken).value().tries, FirmwareTries{});
}

// ConnectX-3, and tools older than the column.
TEST(PlanFirmware, WithoutCurrentValuesNothingIsCounted) {
    auto old = card();
    old.current.reset();
    EXPECT_EQ(plan_of(vfs(16), desired(), host(), old).value().tries, FirmwareTries{});
    EXPECT_EQ(plan_of(vfs(8), desired(), host(), old).value().plan, Plan{});
    EXPECT_EQ(pending_of(desired(), old), std::nullopt);
}

TEST(PendingFirmware, IsARebootUntilOneDidNotDoIt) {
    auto now = desired();
    auto waiting = card();
    EXPECT_EQ(pending_of(now, waiting), FirmwarePending::none);
    waiting.next->num_of_vfs = 16;
    now.firmware_tries[pf_address] = after_boots({"boot 1"}, true);
    EXPECT_EQ(pending_of(now, waiting), FirmwarePending::reboot);
    waiting.boot_id = "boot 2";
    EXPECT_EQ(pending_of(now, waiting), FirmwarePending::power_cycle);
    waiting.next->num_of_vfs = 12;  // changed by another admin since
    EXPECT_EQ(pending_of(now, waiting), FirmwarePending::reboot);
}

}  // namespace
}  // namespace vfmgr
