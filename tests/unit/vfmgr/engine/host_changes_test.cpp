// SPDX-License-Identifier: Apache-2.0
// Which events two observations of a host give.
#include "vfmgr/engine/host_changes.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/driver_model.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;
using example::pf0;

PciAddress const second_pf{0, 2, 0, 0};
constexpr auto uuid = "11111111-1111-1111-1111-111111111111";

struct HostChanges : testing::Test {
    HostView host;
    DesiredState desired;
    std::optional<HostFacts> known;

    HostChanges() {
        host.kernel = example::igb_host();
        host.kernel.complete = true;
        host.hypervisor.observed_at = Time(1s);
        add_vm(uuid, "vm1", 7);
        known = facts_of(host, desired, {});
    }
    PfState& pf() { return host.kernel.pfs.at(pf0); }
    void add_vm(std::string const& id, std::string const& name,
                std::optional<std::int32_t> start_id) {
        VmInfo vm;
        vm.uuid = id;
        vm.name = name;
        vm.start_id = start_id;
        host.hypervisor.vms[id] = vm;
    }
    VmInfo& vm() { return host.hypervisor.vms.at(uuid); }
    std::vector<Event> events() {
        auto now = facts_of(host, desired, known).value();
        auto found = changes(known, now, Time(5s));
        known = std::move(now);
        return found;
    }
    std::vector<EventKind> kinds() {
        std::vector<EventKind> all;
        for (auto const& event : events()) all.push_back(event.kind);
        return all;
    }
    using Kinds = std::vector<EventKind>;
};

TEST_F(HostChanges, NothingIsKnownBeforeAllWasObserved) {
    HostView part;
    EXPECT_EQ(facts_of(part, {}, {}), std::nullopt);
    part.kernel.complete = true;
    EXPECT_EQ(facts_of(part, {}, {}), std::nullopt) << "libvirt was not asked";
    part.hypervisor.stale = true;
    EXPECT_TRUE(facts_of(part, {}, {}));
}

TEST_F(HostChanges, AStartIsOneEvent) {
    auto const begun = changes({}, *known, Time(5s));
    ASSERT_EQ(begun.size(), 1U);
    EXPECT_EQ(begun[0].kind, EventKind::vfmgrd_started);
    EXPECT_EQ(begun[0].at, Time(5s));
}

TEST_F(HostChanges, WhatIsObservedAgainIsNoEvent) {
    EXPECT_EQ(kinds(), Kinds{});
    pf().observed_at = Time(9s);
    host.hypervisor.observed_at = Time(9s);
    vm().free_pcie_ports = 1;
    pf().vfs.emplace_back();
    EXPECT_EQ(kinds(), Kinds{});
}

TEST_F(HostChanges, ALinkAndTheNumberOfVfs) {
    pf().info.carrier = !pf().info.carrier;
    bool const up = pf().info.carrier;
    pf().info.num_vfs = 4;
    auto const found = events();
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].kind, up ? EventKind::link_up : EventKind::link_down);
    EXPECT_EQ(found[0].pf, pf0);
    EXPECT_EQ(found[1].kind, EventKind::num_vfs_changed);
    EXPECT_EQ(found[1].detail, "PF enp1s0 has 4 VFs; it had 0");
    pf().info.carrier = !up;
    EXPECT_EQ(kinds(), Kinds{up ? EventKind::link_down : EventKind::link_up});
}

TEST_F(HostChanges, WhatCantBeReadHasNotChanged) {
    auto const before = pf();
    pf().stale = true;
    pf().info.num_vfs = 9;
    pf().info.carrier = !before.info.carrier;
    EXPECT_EQ(kinds(), Kinds{});
    pf() = before;
    EXPECT_EQ(kinds(), Kinds{});
}

TEST_F(HostChanges, APfHangsAndAnswersAgain) {
    auto const before = pf();
    pf().stale = true;
    pf().stuck = "its worker hangs";
    pf().pci_busy = true;
    auto const hung = events();
    ASSERT_EQ(hung.size(), 2U);
    EXPECT_EQ(hung[0].kind, EventKind::pf_stuck);
    EXPECT_EQ(hung[0].detail, "PF enp1s0 is stuck: its worker hangs");
    EXPECT_EQ(hung[1].kind, EventKind::pci_busy);
    EXPECT_EQ(kinds(), Kinds{}) << "once";
    pf() = before;
    EXPECT_EQ(kinds(), (Kinds{EventKind::pf_answers, EventKind::pci_free}));
}

TEST_F(HostChanges, PfsComeAndGo) {
    host.kernel.pfs[second_pf] = make_igb_pf("0000:02:00.0", "enp2s0");
    auto const came = events();
    ASSERT_EQ(came.size(), 1U);
    EXPECT_EQ(came[0].kind, EventKind::pf_here);
    EXPECT_EQ(came[0].pf, second_pf);
    host.kernel.pfs.erase(second_pf);
    auto const gone = events();
    ASSERT_EQ(gone.size(), 1U);
    EXPECT_EQ(gone[0].kind, EventKind::pf_gone);
    EXPECT_EQ(gone[0].detail, "PF enp2s0 is not on this host");
    EXPECT_EQ(kinds(), Kinds{});
}

TEST_F(HostChanges, AManagedPfLosesItsDriverMovesAndIsGone) {
    desired.pfs[pf0] = {};
    desired.identities[pf0] = pf().info.identity;
    EXPECT_EQ(kinds(), Kinds{});
    auto const card = pf();
    pf().info.driver.clear();
    EXPECT_EQ(kinds(), Kinds{EventKind::pf_unbound});
    host.kernel.pfs.clear();
    EXPECT_EQ(kinds(), Kinds{EventKind::pf_gone});
    host.kernel.pfs[second_pf] = card;
    host.kernel.pfs[second_pf].info.pci = second_pf;
    EXPECT_EQ(kinds(), (Kinds{EventKind::pf_renumbered, EventKind::pf_renumbered}))
        << "the PF, and what is at the other address";
    host.kernel.pfs = {{pf0, card}};
    EXPECT_EQ(kinds(), Kinds{EventKind::pf_here});
    host.kernel.pfs.clear();
    EXPECT_EQ(kinds(), Kinds{EventKind::pf_gone});
    desired = {};
    EXPECT_EQ(kinds(), Kinds{}) << "it was confirmed gone";
}

TEST_F(HostChanges, VmsComeStartStopAndGo) {
    constexpr auto other = "22222222-2222-2222-2222-222222222222";
    add_vm(other, "vm2", {});
    auto const came = events();
    ASSERT_EQ(came.size(), 1U);
    EXPECT_EQ(came[0].kind, EventKind::vm_appeared);
    EXPECT_EQ(came[0].vm, "vm2");
    EXPECT_EQ(came[0].vm_uuid, other);
    EXPECT_EQ(came[0].pf, std::nullopt);
    host.hypervisor.vms.at(other).start_id = 8;
    EXPECT_EQ(kinds(), Kinds{EventKind::vm_started});
    host.hypervisor.vms.at(other).start_id = 9;
    EXPECT_EQ(kinds(), (Kinds{EventKind::vm_stopped, EventKind::vm_started})) << "between looks";
    host.hypervisor.vms.erase(other);
    EXPECT_EQ(kinds(), (Kinds{EventKind::vm_stopped, EventKind::vm_disappeared}));
}

TEST_F(HostChanges, NoVmStopsBecauseLibvirtCantBeQueried) {
    auto const before = host.hypervisor;
    host.hypervisor = {};
    host.hypervisor.stale = true;
    host.hypervisor.stale_reason = "no socket";
    auto const lost = events();
    ASSERT_EQ(lost.size(), 1U);
    EXPECT_EQ(lost[0].kind, EventKind::libvirt_lost);
    EXPECT_EQ(lost[0].detail, "libvirt can't be queried: no socket");
    host.hypervisor = before;
    vm().start_id.reset();
    EXPECT_EQ(kinds(), (Kinds{EventKind::libvirt_found, EventKind::vm_stopped}));
}

TEST_F(HostChanges, VmsThatWereNeverReadDoNotAppear) {
    auto const before = host.hypervisor;
    host.hypervisor = {};
    host.hypervisor.stale = true;
    known = facts_of(host, desired, {});
    host.hypervisor = before;
    EXPECT_EQ(kinds(), Kinds{EventKind::libvirt_found});
}

TEST_F(HostChanges, ALinkThatFlapsIsReportedTenTimesAMinute) {
    LinkFlaps flaps;
    Deadline now{};
    int reported = 0;
    for (int i = 0; i < 51; ++i) {
        now += 1s;
        pf().info.carrier = !pf().info.carrier;
        auto facts = facts_of(host, desired, known).value();
        flaps.damp(*known, facts, now);
        reported += static_cast<int>(changes(known, facts, Time{}).size());
        known = std::move(facts);
    }
    EXPECT_EQ(reported, 10);
    EXPECT_NE(known->pfs.at(pf0).carrier, pf().info.carrier);
    now += 60s;
    auto facts = facts_of(host, desired, known).value();
    flaps.damp(*known, facts, now);
    EXPECT_EQ(changes(known, facts, Time{}).size(), 1U) << "what it is now";
}

}  // namespace
}  // namespace vfmgr
