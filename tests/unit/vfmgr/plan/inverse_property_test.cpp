// SPDX-License-Identifier: Apache-2.0
// A step's inverse restores the host, whether the step happened, happened by half, or did not.
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/property.hpp"

namespace vfmgr {
namespace {

using namespace drawn;

// Excludes steps that can't be undone exactly (vfmgr/kernel/KERNEL.md#what-cant-be-undone): VFs
// that are recreated are not the old ones, and Linux forgets the routes of a link that goes down.
bool exact(Step const& step, HostView const& before) {
    if (auto const* count = as<SetNumVfs>(step)) return find_pf(before, count->pf)->vfs.empty();
    if (auto const* link = as<SetLink>(step)) {
        auto const* interface = find_interface(before, link->interface);
        return !interface || ((link->up || !interface->up) && link->mtu >= interface->mtu);
    }
    return true;
}

void expect_undone(World const& before, Step const& step, std::optional<FaultPoint> fault) {
    Fakes fakes(before);
    if (fault) fakes.kernel.fail_at = fakes.hypervisor.fail_at = Fault{0, *fault};
    auto const done = fakes.perform(step);
    fakes.kernel.fail_at.reset();
    fakes.hypervisor.fail_at.reset();
    RC_ASSERT(done.has_value() != fault.has_value());
    for (auto const& back : inverse(step, before.view)) {
        RC_LOG() << "undo: " << sentence(back) << "\n";
        RC_ASSERT(fakes.perform(back).has_value());
    }
    expect_same(before.view, fakes.view(), "after undoing: " + sentence(step));
}

void undo_each(World world, Plan const& plan, Tally& tally) {
    for (auto const& step : plan.steps) {
        if (as<AwaitVerification>(step)) continue;
        RC_LOG() << sentence(step) << "\n";
        Fakes fakes(world);
        if (!fakes.perform(step)) return;  // what the driver refuses is undone in another property
        if (exact(step, world.view)) {
            expect_undone(world, step, std::nullopt);
            for (auto const point : {FaultPoint::before, FaultPoint::halfway})
                expect_undone(world, step, point);
            tally.count(nlohmann::json(step).at("step"));
        }
        world.view = fakes.view();
    }
}

// The same request for a VMM that libvirt does not run, and its end.
void undo_each_of_external(World world, AttachmentSpec spec, Tally& tally) {
    spec.vm.clear();
    spec.verify.reset();
    spec.holder = ExternalHolder{HolderKind::external, "qm-104", 64055};
    auto const planned = plan_attachment(world.view, world.desired, "bbbb0002", spec, "seed");
    if (!planned) return;
    undo_each(world, planned->plan, tally);
    Fakes fakes(world);
    for (auto const& step : planned->plan.steps)
        if (!fakes.perform(step)) return;
    world.view = fakes.view();
    auto const& attachment = planned->attachment;
    world.desired.pfs[attachment.vf.pf].base = planned->base;
    world.desired.attachments[attachment.id] = attachment;
    if (auto const plan = plan_detach(world.view, world.desired, attachment))
        undo_each(world, *plan, tally);
}

TEST(InverseProperty, PutsTheHostBack) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto const [world, pf_specs] = draw(with_specs<any_pf_spec>);
        auto const attachment_specs = draw(with_specs<any_attachment>).second;
        for (auto const& [pf, requested] : pf_specs)
            if (auto const plan = plan_pf(world.view, world.desired, pf, requested))
                undo_each(world, *plan, tally);
        for (auto const& spec : attachment_specs)
            if (auto const planned =
                    plan_attachment(world.view, world.desired, "bbbb0001", spec, "seed"))
                undo_each(world, planned->plan, tally);
        for (auto const& spec : attachment_specs) undo_each_of_external(world, spec, tally);
        for (auto const& [id, attachment] : world.desired.attachments)
            if (auto const plan = plan_detach(world.view, world.desired, attachment))
                undo_each(world, *plan, tally);
    });
    tally.expect_at_least(
        1, {"set_num_vfs", "configure_vfs", "bind_vfs", "reset_vf", "set_link",
            "add_vlan_interface", "remove_vlan_interface", "add_address", "remove_address",
            "add_peer", "remove_peer", "add_rdma_link", "remove_rdma_link", "attach_hostdev",
            "detach_hostdev", "attach_external", "detach_external"});
}

}  // namespace
}  // namespace vfmgr
