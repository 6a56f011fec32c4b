// SPDX-License-Identifier: Apache-2.0
// Properties of every repair, whatever others did to a host with attachments.
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/property.hpp"
#include "vfmgr/plan/drift.hpp"
#include "vfmgr/plan/links.hpp"

namespace vfmgr {
namespace {

using namespace drawn;

// As the kernel and QEMU do when a VF is removed, or detached.
void take_from_vms(World& world, VfState& vf) {
    vf.holders.clear();
    for (auto& [uuid, vm] : world.view.hypervisor.vms)
        std::erase_if(vm.live, [&](VmHostdev const& device) { return device.pci == vf.pci; });
}

void vandalise_vf(World& world, VfState& vf) {
    if (chance(20)) take_from_vms(world, vf);
    if (chance(25))
        vf.settings = overlay(vf.settings, only_members_of(vf.settings, any_settings(40)));
    if (chance(25) && vf.holders.empty()) vf.driver = maybe(50, std::string("igbvf"));
}

void vandalise(World& world, PfState& pf) {
    if (chance(30)) {
        for (auto& vf : pf.vfs) take_from_vms(world, vf);
        pf.vfs.clear();
        pf.info.num_vfs = 0;
    } else if (chance(20) && !pf.vfs.empty()) {
        take_from_vms(world, pf.vfs.back());
        pf.vfs.pop_back();
    }
    for (auto& vf : pf.vfs) vandalise_vf(world, vf);
    if (chance(20)) pf.interfaces.resize(1);
    if (chance(20)) pf.info.up = pf.interfaces[0].up = false;
}

World vandalised() {
    auto world = any_world();
    for (auto& [pci, expected] : world.desired.pfs) {
        expected.spec.mode = PfMode::enforce;
        vandalise(world, world.view.kernel.pfs.at(pci));
    }
    return world;
}

void expect_takes_from_nobody(HostView const& host, Plan const& plan) {
    World const now{host, {}, {}};
    for (auto const& step : plan.steps) {
        if (as<ConfigureVfs>(step)) continue;
        for (auto const& id : touched(now, step)) {
            auto const* vf = find_vf(host, id);
            RC_ASSERT(!vf || vf->holders.empty());
            for (auto const& [uuid, vm] : host.hypervisor.vms)
                RC_ASSERT(!vf || std::ranges::count(vm.live, vf->pci, &VmHostdev::pci) == 0);
        }
    }
}

// false: the plan or the driver refused it
bool repaired(World& world, Plan const& plan, Tally& tally) {
    log(plan);
    expect_takes_from_nobody(world.view, plan);
    Fakes fakes(world);
    bool well = true;
    for (auto const& step : plan.steps) well = well && fakes.perform(step).has_value();
    world.view = fakes.view();
    tally.count("refused by the driver", !well);
    return well && plan.notes.empty();
}

bool repair_all(World& world, PciAddress const& pf, Tally& tally) {
    auto const plan = plan_repair(world.view, world.desired, pf);
    if (!plan) {
        expect_says_why(plan.error());
        tally.count("refused");
        return false;
    }
    bool well = repaired(world, *plan, tally);
    for (auto const& attachment : attached_on(world.desired, pf)) {
        auto const back = plan_return(world.view, attachment);
        if (!back) expect_says_why(back.error());
        if (!back || back->steps.empty()) continue;
        tally.count("returned to its VM");
        well = repaired(world, *back, tally) && well;
    }
    return well;
}

TEST(PlanRepairProperty, LeavesNoDriftThatItCanHelp) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto world = draw(vandalised);
        for (auto const& [pci, expected] : world.desired.pfs) {
            if (!can_be_judged(find_pf(world.view, pci))) continue;
            auto const on_it = [&](Drift const& drift) { return drift.pf == pci; };
            auto const before = std::ranges::count_if(find_drift(world.view, world.desired), on_it);
            if (!repair_all(world, pci, tally)) continue;
            // A second plan finds nothing left to do except what was refused.
            auto const again = plan_repair(world.view, world.desired, pci);
            RC_ASSERT(again.has_value());
            log(*again);
            RC_ASSERT(again->steps.empty());
            for (auto const& left : find_drift(world.view, world.desired)) {
                RC_LOG() << left.sentence << "\n";
                // libvirt can't report who uses a VF that is not attached.
                bool const unknown = world.view.hypervisor.stale && !left.attachment;
                RC_ASSERT(!on_it(left) || unknown || left.what == "hostdev" ||
                          left.what == "persistent hostdev");
            }
            tally.count("repaired", before > 0);
            tally.count("with nothing to repair", before == 0);
        }
    });
    tally.expect_at_least(2, {"repaired", "refused", "returned to its VM"});
}

}  // namespace
}  // namespace vfmgr
