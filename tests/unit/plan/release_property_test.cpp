// SPDX-License-Identifier: Apache-2.0
// What holds of every release, and of every restore after a boot.
#include <gtest/gtest.h>

#include "tests/unit/plan/property.hpp"
#include "vfmgr/plan/links.hpp"

namespace vfmgr {
namespace {

using namespace drawn;

World without(World world, HostView view, Attachment const& lease) {
    world.view = std::move(view);
    world.desired.attachments.erase(lease.id);
    bool const last = std::ranges::none_of(world.desired.attachments, [&](auto const& other) {
        return other.second.vf.pf == lease.vf.pf;
    });
    if (last) world.desired.pfs.at(lease.vf.pf).base.reset();
    return world;
}

void expect_clean(World const& before, World const& after, Attachment const& lease) {
    for (auto const& [uuid, vm] : after.view.hypervisor.vms)
        for (auto const* devices : {&vm.live, &vm.config})
            RC_ASSERT(std::ranges::count(*devices, lease.vf_pci, &VmHostdev::pci) == 0);
    auto const& vf = *find_vf(after.view, lease.vf);
    RC_ASSERT(vf.driver == before.desired.pfs.at(lease.vf.pf).spec.vf_driver);
    RC_ASSERT(only_members_of(lease.baseline, vf.settings) == lease.baseline);
    for (auto const& [pci, pf] : before.view.kernel.pfs)
        for (auto const& other : pf.vfs)
            if (VfId{pci, other.index} != lease.vf)
                RC_ASSERT(other == *find_vf(after.view, {pci, other.index}));
    // Nothing is left to be done but the reset, which is done whatever the VF looks like.
    auto const again = plan_release(after.view, after.desired, lease).value();
    log(again);
    RC_ASSERT(again.steps == (std::vector<Step>{ResetVf{lease.vf}}));
    auto const restore = plan_restore(before.view, before.desired, lease.vf.pf).value();
    if (restore.steps.empty())  // what others have stood before, and stands now
        RC_ASSERT(plan_restore(after.view, after.desired, lease.vf.pf).value().steps.empty());
}

TEST(PlanReleaseProperty, CleansTheVfAndLeavesTheOthers) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto world = draw(any_world);
        world.view = without_stand_ins(std::move(world.view));
        for (auto const& [id, lease] : world.desired.attachments) {
            auto const plan = plan_release(world.view, world.desired, lease);
            bool const used = in_use(world, lease.vf, &lease);
            tally.count("used by others too", used);
            if (!plan) {
                expect_says_why(plan.error());
                tally.count("refused");
                RC_ASSERT(used || plan.error().problem == Problem::unavailable);
                continue;
            }
            log(*plan);
            expect_touches_nobody_else(world, *plan, &lease);
            Fakes fakes(world);
            for (auto const& step : plan->steps) RC_ASSERT(fakes.perform(step).has_value());
            RC_ASSERT(fakes.kernel.resets(lease.vf) == 1);
            expect_clean(world, without(world, without_stand_ins(fakes.view()), lease), lease);
            tally.count("released");
            tally.count("released beside others", world.desired.attachments.size() > 1);
        }
    });
    tally.expect_at_least(2,
                          {"refused", "released", "released beside others", "used by others too"});
}

// The same host as before, but for the driver that the VF had.
TEST(PlanReleaseProperty, UndoesALease) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto const [before, after] = draw([] {
            auto quiet = quiet_world();
            auto lent = quiet;
            lend(lent, "bbbb0001");
            return std::pair(std::move(quiet), std::move(lent));
        });
        auto const found = after.desired.attachments.find("bbbb0001");
        if (found == after.desired.attachments.end()) return;
        auto const& lease = found->second;
        auto const plan = plan_release(after.view, after.desired, lease).value();
        log(plan);
        Fakes fakes(after);
        for (auto const& step : plan.steps) RC_ASSERT(fakes.perform(step).has_value());
        auto wanted = before.view;
        for (auto& vf : wanted.kernel.pfs.at(lease.vf.pf).vfs) {
            if (vf.index != lease.vf.index) continue;
            vf.driver = after.desired.pfs.at(lease.vf.pf).spec.vf_driver;
            vf.ifname.reset();
        }
        expect_same(wanted, fakes.view(), "after lease and release");
        tally.count("lent and released");
        tally.count("beside others", !before.desired.attachments.empty());
        tally.count("over a network", lease.spec.network.has_value());
    });
    tally.expect_at_least(2, {"lent and released", "beside others", "over a network"});
}

// What is left of a host after it was switched off: neither VFs nor what vfmgr had made.
World booted(World world) {
    world.view.hypervisor = {};
    world.view.kernel.routes.clear();
    for (auto& [pci, pf] : world.view.kernel.pfs) {
        pf.vfs.clear();
        pf.info.num_vfs = 0;
        pf.legs.resize(1);
        pf.legs[0].peers.clear();
        auto const& base = world.desired.pfs[pci].base;
        if (!base) continue;
        pf.info.up = pf.legs[0].up = base->up;
        pf.info.mtu = pf.legs[0].mtu = base->mtu;
        pf.legs[0].addresses.clear();
        pf.legs[0].prefixes.clear();
        if (pf.info.rdma_driver != "rxe") continue;
        pf.info.rdma_device.reset();
        pf.info.rdma_driver.reset();
    }
    return world;
}

void expect_restored(World const& before, World const& now, Attachment const& lease,
                     std::vector<std::string> const& notes, Tally& tally) {
    auto const* vf = find_vf(now.view, lease.vf);
    if (!vf) {
        auto const names_it = [&](std::string const& note) {
            return note.find("VF " + to_string(lease.vf)) != note.npos;
        };
        RC_ASSERT(std::ranges::any_of(notes, names_it));
        return tally.count("without its VF");
    }
    RC_ASSERT(vf->driver == "vfio-pci");
    RC_ASSERT(vf->pci == lease.vf_pci);
    // What best_effort allowed the driver to refuse is refused again.
    auto const refused = differing(lease.settings, find_vf(before.view, lease.vf)->settings);
    auto const held = differing(lease.settings, refused);
    RC_ASSERT(empty(differing(held, vf->settings)));
    tally.count("restored");
}

TEST(PlanRestoreProperty, PutsBackWhatABootLost) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto const before = draw(quiet_world);
        auto const off = booted(before);
        for (auto const& [pci, pf] : off.desired.pfs) {
            auto now = off;
            Fakes fakes(now);
            auto plan = plan_restore(now.view, now.desired, pci).value();
            for (int round = 0; round < 4 && !plan.steps.empty(); ++round) {
                log(plan);
                for (auto const& step : plan.steps) {
                    auto const done = fakes.perform(step);
                    if (!done && leases_on(off.desired, pci, "").empty()) return;
                    RC_ASSERT(done.has_value());
                }
                now.view = fakes.view();
                plan = plan_restore(now.view, now.desired, pci).value();
            }
            RC_ASSERT(plan.steps.empty());
            for (auto const& [id, lease] : off.desired.attachments)
                if (lease.vf.pf == pci) expect_restored(before, now, lease, plan.notes, tally);
        }
    });
    tally.expect_at_least(2, {"restored", "without its VF"});
}

// vfmgr-restore can be started on a host that runs.
TEST(PlanRestoreProperty, TouchesNoVfThatIsUsed) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto world = draw(any_world);
        world.view.hypervisor = {};  // libvirt is not asked
        for (auto const& [pci, pf] : world.desired.pfs) {
            auto const plan = plan_restore(world.view, world.desired, pci);
            if (!plan) {
                expect_says_why(plan.error());
                continue;
            }
            log(*plan);
            for (auto const& [id, lease] : world.desired.attachments)
                tally.count("lent VFs in use", in_use(world, lease.vf, &lease));
            for (auto const& step : plan->steps)
                for (auto const& vf : touched(world, step))
                    RC_ASSERT(find_vf(world.view, vf)->holders.empty());
        }
    });
    tally.expect_at_least(2, {"lent VFs in use"});
}

}  // namespace
}  // namespace vfmgr
