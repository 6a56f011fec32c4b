// SPDX-License-Identifier: Apache-2.0
// Properties of every detach, and of every restore after a boot.
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/property.hpp"
#include "vfmgr/plan/links.hpp"

namespace vfmgr {
namespace {

using namespace drawn;

World without(World world, HostView view, Attachment const& attachment) {
    world.view = std::move(view);
    world.desired.attachments.erase(attachment.id);
    bool const last = std::ranges::none_of(world.desired.attachments, [&](auto const& other) {
        return other.second.vf.pf == attachment.vf.pf;
    });
    if (last) world.desired.pfs.at(attachment.vf.pf).base.reset();
    return world;
}

void expect_clean(World const& before, World const& after, Attachment const& attachment) {
    for (auto const& [uuid, vm] : after.view.hypervisor.vms)
        for (auto const* devices : {&vm.live, &vm.config})
            RC_ASSERT(std::ranges::count(*devices, attachment.vf_pci, &VmHostdev::pci) == 0);
    auto const& vf = *find_vf(after.view, attachment.vf);
    RC_ASSERT(vf.driver == before.desired.pfs.at(attachment.vf.pf).spec.vf_driver);
    RC_ASSERT(only_members_of(attachment.baseline, vf.settings) == attachment.baseline);
    for (auto const& [pci, pf] : before.view.kernel.pfs)
        for (auto const& other : pf.vfs)
            if (VfId{pci, other.index} != attachment.vf)
                RC_ASSERT(other == *find_vf(after.view, {pci, other.index}));
    // Nothing is left to do but the reset, which is done whatever the VF's state.
    auto const again = plan_detach(after.view, after.desired, attachment).value();
    log(again);
    RC_ASSERT(again.steps == (std::vector<Step>{ResetVf{attachment.vf}}));
    auto const restore = plan_restore(before.view, before.desired, attachment.vf.pf).value();
    if (restore.steps.empty())  // others' changes, present before and now
        RC_ASSERT(plan_restore(after.view, after.desired, attachment.vf.pf).value().steps.empty());
}

TEST(PlanDetachProperty, CleansTheVfAndLeavesTheOthers) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto world = draw(any_world);
        world.view = without_stand_ins(std::move(world.view));
        for (auto const& [id, attachment] : world.desired.attachments) {
            auto const plan = plan_detach(world.view, world.desired, attachment);
            bool const used = in_use(world, attachment.vf, &attachment);
            tally.count("used by others too", used);
            if (!plan) {
                expect_says_why(plan.error());
                tally.count("refused");
                RC_ASSERT(used || plan.error().problem == Problem::unavailable);
                continue;
            }
            log(*plan);
            expect_touches_nobody_else(world, *plan, &attachment);
            Fakes fakes(world);
            for (auto const& step : plan->steps) RC_ASSERT(fakes.perform(step).has_value());
            RC_ASSERT(fakes.kernel.resets(attachment.vf) == 1);
            expect_clean(world, without(world, without_stand_ins(fakes.view()), attachment),
                         attachment);
            tally.count("detached");
            tally.count("released beside others", world.desired.attachments.size() > 1);
        }
    });
    tally.expect_at_least(2,
                          {"refused", "detached", "released beside others", "used by others too"});
}

// The same host as before, except for the VF's driver.
TEST(PlanDetachProperty, UndoesAnAttachment) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto const [before, after] = draw([] {
            auto quiet = quiet_world();
            auto attached = quiet;
            attach(attached, "bbbb0001");
            return std::pair(std::move(quiet), std::move(attached));
        });
        auto const found = after.desired.attachments.find("bbbb0001");
        if (found == after.desired.attachments.end()) return;
        auto const& attachment = found->second;
        auto const plan = plan_detach(after.view, after.desired, attachment).value();
        log(plan);
        Fakes fakes(after);
        for (auto const& step : plan.steps) RC_ASSERT(fakes.perform(step).has_value());
        auto expected = before.view;
        for (auto& vf : expected.kernel.pfs.at(attachment.vf.pf).vfs) {
            if (vf.index != attachment.vf.index) continue;
            vf.driver = after.desired.pfs.at(attachment.vf.pf).spec.vf_driver;
            vf.ifname.reset();
            // Its nodes come with the driver, whatever it had before.
            vf.vfio.reset();
            if (vf.driver) vf.vfio = find_vf(fakes.view(), attachment.vf)->vfio;
            RC_ASSERT(!vf.vfio || vf.vfio->owner == 0);
        }
        expect_same(expected, fakes.view(), "after attachment and release");
        tally.count("attached and released");
        tally.count("beside others", !before.desired.attachments.empty());
        tally.count("over a network", attachment.spec.network.has_value());
    });
    tally.expect_at_least(2, {"attached and released", "beside others", "over a network"});
}

// The state of a host after power-off: neither VFs nor what vfmgr had made.
World booted(World world) {
    world.view.hypervisor = {};
    world.view.kernel.routes.clear();
    for (auto& [pci, pf] : world.view.kernel.pfs) {
        pf.vfs.clear();
        pf.info.num_vfs = 0;
        pf.interfaces.resize(1);
        pf.interfaces[0].peers.clear();
        auto const& base = world.desired.pfs[pci].base;
        if (!base) continue;
        pf.info.up = pf.interfaces[0].up = base->up;
        pf.info.mtu = pf.interfaces[0].mtu = base->mtu;
        pf.interfaces[0].addresses.clear();
        pf.interfaces[0].prefixes.clear();
        if (pf.info.rdma_driver != "rxe") continue;
        pf.info.rdma_device.reset();
        pf.info.rdma_driver.reset();
    }
    return world;
}

void expect_restored(World const& before, World const& now, Attachment const& attachment,
                     std::vector<std::string> const& notes, Tally& tally) {
    auto const* vf = find_vf(now.view, attachment.vf);
    if (!vf) {
        auto const names_it = [&](std::string const& note) {
            return note.find("VF " + to_string(attachment.vf)) != note.npos;
        };
        RC_ASSERT(std::ranges::any_of(notes, names_it));
        return tally.count("without its VF");
    }
    RC_ASSERT(vf->driver == "vfio-pci");
    RC_ASSERT(vf->pci == attachment.vf_pci);
    // The driver refuses again what best_effort allowed it to refuse.
    auto const refused =
        differing(attachment.settings, find_vf(before.view, attachment.vf)->settings);
    auto const held = differing(attachment.settings, refused);
    RC_ASSERT(empty(differing(held, vf->settings)));
    tally.count("restored");
}

TEST(PlanRestoreProperty, RestoresWhatABootLost) {
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
                    if (!done && attachments_on(off.desired, pci, "").empty()) return;
                    RC_ASSERT(done.has_value());
                }
                now.view = fakes.view();
                plan = plan_restore(now.view, now.desired, pci).value();
            }
            RC_ASSERT(plan.steps.empty());
            for (auto const& [id, attachment] : off.desired.attachments)
                if (attachment.vf.pf == pci)
                    expect_restored(before, now, attachment, plan.notes, tally);
        }
    });
    tally.expect_at_least(2, {"restored", "without its VF"});
}

// vfmgr-restore can be started on a running host.
TEST(PlanRestoreProperty, TouchesNoVfThatIsUsed) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto world = draw(any_world);
        world.view.hypervisor = {};  // libvirt is not queried
        for (auto const& [pci, pf] : world.desired.pfs) {
            auto const plan = plan_restore(world.view, world.desired, pci);
            if (!plan) {
                expect_says_why(plan.error());
                continue;
            }
            log(*plan);
            for (auto const& [id, attachment] : world.desired.attachments)
                tally.count("attached VFs in use", in_use(world, attachment.vf, &attachment));
            for (auto const& step : plan->steps)
                for (auto const& vf : touched(world, step))
                    RC_ASSERT(find_vf(world.view, vf)->holders.empty());
        }
    });
    tally.expect_at_least(2, {"attached VFs in use"});
}

}  // namespace
}  // namespace vfmgr
