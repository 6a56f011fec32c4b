// SPDX-License-Identifier: Apache-2.0
// Properties of every plan for a PF and for an attachment, whatever the host and the desired state.
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/property.hpp"

namespace vfmgr {
namespace {

using namespace drawn;

bool empty_again(Fakes const& after, World world, PciAddress const& pf, PfSpec const& requested) {
    world.view = after.view();
    world.desired.pfs[pf].spec = requested;
    return plan_pf(world.view, world.desired, pf, requested).value().steps.empty();
}

void expect_bound(World const& world, HostView const& after, PciAddress const& pf,
                  PfSpec const& requested) {
    for (auto const& vf : after.kernel.pfs.at(pf).vfs) {
        VfId const id{pf, vf.index};
        bool const may = !world.view.hypervisor.stale && !in_use(world, id);
        RC_ASSERT(vf.driver == (may ? requested.vf_driver : find_vf(world.view, id)->driver));
    }
}

void expect_pf_as(World const& world, HostView const& after, PciAddress const& pf,
                  PfSpec const& requested) {
    auto const& state = after.kernel.pfs.at(pf);
    bool const observed = requested.mode == PfMode::observe;
    bool const counted = !observed && requested.num_vfs &&
                         *requested.num_vfs != world.view.kernel.pfs.at(pf).info.num_vfs;
    if (!counted && !observed && requested.vf_driver)
        return expect_bound(world, after, pf, requested);
    if (!counted) return expect_same(world.view, after, "although nothing was to be done");
    RC_ASSERT(state.info.num_vfs == *requested.num_vfs);
    RC_ASSERT(state.vfs.size() == *requested.num_vfs);
    for (auto const& vf : state.vfs) RC_ASSERT(vf.driver == requested.vf_driver);
}

TEST(PlanPfProperty, ReachesTheGoalOrReportsWhyNot) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto const [world, configured] = draw(with_specs<any_pf_spec>);
        for (auto const& [pf, requested] : configured) {
            auto const plan = plan_pf(world.view, world.desired, pf, requested);
            auto const* state = find_pf(world.view, pf);
            bool const used = state && std::ranges::any_of(state->vfs, [&](VfState const& vf) {
                                  return in_use(world, {pf, vf.index});
                              });
            tally.count("with VFs in use", used);
            tally.count(plan ? "planned" : "refused");
            if (!plan) {
                expect_says_why(plan.error());
                tally.count("refused for VFs in use", plan.error().problem == Problem::vf_in_use);
                RC_ASSERT(used || plan.error().problem != Problem::vf_in_use);
                continue;
            }
            log(*plan);
            tally.count("with steps", !plan->steps.empty());
            expect_touches_nobody_else(world, *plan);
            Fakes fakes(world);
            bool done = true;
            for (auto const& step : plan->steps) done = done && fakes.perform(step).has_value();
            tally.count("refused by the driver", !done);
            if (!done) {
                // Where there are several steps, the engine undoes those before the refused one.
                if (plan->steps.size() == 1 && !requested.vf_driver)
                    expect_same(world.view, fakes.view(), "after a refusal");
                continue;
            }
            expect_pf_as(world, fakes.view(), pf, requested);
            RC_ASSERT(empty_again(fakes, world, pf, requested));
        }
    });
    tally.expect_at_least(
        5, {"planned", "with steps", "refused", "with VFs in use", "refused for VFs in use"});
}

bool mentions(std::vector<VmHostdev> const& devices, Attachment const& attachment) {
    return std::ranges::find(devices, VmHostdev{attachment.vf_pci, hostdev_alias(attachment.id)}) !=
           devices.end();
}

// Every interface that an attachment needs exists, also for attachments made before.
void expect_reachable(HostView const& view, DesiredState const& desired,
                      Attachment const& attachment) {
    if (!attachment.spec.network) return;
    auto const carried = network_of(desired.networks, attachment);
    RC_ASSERT(carried.has_value());
    auto const& [network, host_address] = *carried;
    auto const* interface = find_interface(view, {attachment.vf.pf, network->vlan});
    RC_ASSERT(interface != nullptr);
    RC_ASSERT(interface->up);
    RC_ASSERT(interface->mtu >= network->mtu);
    RC_ASSERT(std::ranges::count(interface->addresses, host_address) == 1);
    if (!attachment.settings.mac) return;
    RC_ASSERT(std::ranges::count(interface->peers,
                                 PeerEntry{*attachment.address, attachment.settings.mac}) == 1);
}

void expect_attached(World const& before, HostView const& view, Attachment const& attachment,
                     std::vector<std::string> const& remarks) {
    auto const& vf = *find_vf(view, attachment.vf);
    RC_ASSERT(vf.driver == "vfio-pci");
    auto const missing = differing(attachment.settings, vf.settings);
    if (remarks.empty()) RC_ASSERT(empty(missing));
    auto const& vm = view.hypervisor.vms.at(attachment.vm_uuid);
    RC_ASSERT(mentions(vm.live, attachment) == attachment.live);
    RC_ASSERT(mentions(vm.config, attachment) == attachment.config);
    expect_reachable(view, before.desired, attachment);
    for (auto const& [id, other] : before.desired.attachments)
        expect_reachable(view, before.desired, other);
    for (auto const& [pci, pf] : before.view.kernel.pfs)
        for (auto const& other : pf.vfs)
            if (VfId{pci, other.index} != attachment.vf)
                RC_ASSERT(other == *find_vf(view, {pci, other.index}));
}

// Restore brings back what is attached: a complete attachment leaves nothing to restore.
void expect_nothing_to_restore(World world, HostView const& view, AttachmentPlan const& planned) {
    auto const& attachment = planned.attachment;
    auto const before = plan_restore(world.view, world.desired, attachment.vf.pf).value();
    if (!before.steps.empty()) return;  // another program changed what other attachments have
    world.view = view;
    auto& pf = world.desired.pfs.at(attachment.vf.pf);
    pf.base = planned.base;
    world.desired.attachments[attachment.id] = attachment;
    world.desired.attachments[attachment.id].state = AttachmentState::attached;
    auto const again = plan_restore(world.view, world.desired, attachment.vf.pf).value();
    log(again);
    RC_ASSERT(again.steps.empty());
}

void attach_and_judge(World const& world, AttachmentPlan const& planned, Tally& tally) {
    log(planned.plan);
    expect_touches_nobody_else(world, planned.plan);
    Fakes fakes(world);
    auto const remarks = performed_or_undone(world, fakes, planned.plan, tally);
    if (!remarks) return;
    tally.count("attached");
    tally.count("attached beside others", !world.desired.attachments.empty());
    expect_attached(world, fakes.view(), planned.attachment, *remarks);
    expect_nothing_to_restore(world, fakes.view(), planned);
}

TEST(PlanAttachmentProperty, AttachesAFreeVfOrSaysWhyNot) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto const [world, configured] = draw(with_specs<any_attachment>);
        for (auto const& spec : configured) {
            auto const planned =
                plan_attachment(world.view, world.desired, "bbbb0001", spec, "seed");
            tally.count(planned ? "planned" : "refused");
            if (!planned) {
                expect_says_why(planned.error());
                tally.count("refused for VFs in use",
                            planned.error().problem == Problem::vf_in_use);
                continue;
            }
            attach_and_judge(world, *planned, tally);
        }
    });
    tally.expect_at_least(10, {"refused", "attached", "attached beside others"});
    tally.expect_at_least(1, {"refused by the driver"});
}

}  // namespace
}  // namespace vfmgr
