// SPDX-License-Identifier: Apache-2.0
// What holds of every plan for a PF and for a lease, whatever the host and the wish.
#include <gtest/gtest.h>

#include "tests/unit/plan/property.hpp"

namespace vfmgr {
namespace {

using namespace drawn;

bool empty_again(Fakes const& after, World world, PciAddress const& pf, PfSpec const& want) {
    world.view = after.view();
    world.desired.pfs[pf].spec = want;
    return plan_pf(world.view, world.desired, pf, want).value().steps.empty();
}

void expect_bound(World const& world, HostView const& after, PciAddress const& pf,
                  PfSpec const& want) {
    for (auto const& vf : after.kernel.pfs.at(pf).vfs) {
        VfId const id{pf, vf.index};
        bool const may = !world.view.hypervisor.stale && !in_use(world, id);
        RC_ASSERT(vf.driver == (may ? want.vf_driver : find_vf(world.view, id)->driver));
    }
}

void expect_pf_as(World const& world, HostView const& after, PciAddress const& pf,
                  PfSpec const& want) {
    auto const& state = after.kernel.pfs.at(pf);
    bool const observed = want.mode == PfMode::observe;
    bool const counted =
        !observed && want.num_vfs && *want.num_vfs != world.view.kernel.pfs.at(pf).info.num_vfs;
    if (!counted && !observed && want.vf_driver) return expect_bound(world, after, pf, want);
    if (!counted) return expect_same(world.view, after, "although nothing was to be done");
    RC_ASSERT(state.info.num_vfs == *want.num_vfs);
    RC_ASSERT(state.vfs.size() == *want.num_vfs);
    for (auto const& vf : state.vfs) RC_ASSERT(vf.driver == want.vf_driver);
}

TEST(PlanPfProperty, ReachesTheWishOrSaysWhyNot) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto const [world, wishes] = draw(with_wishes<any_pf_wish>);
        for (auto const& [pf, want] : wishes) {
            auto const plan = plan_pf(world.view, world.desired, pf, want);
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
                // Of several steps the engine undoes those before the one that was refused.
                if (plan->steps.size() == 1 && !want.vf_driver)
                    expect_same(world.view, fakes.view(), "after a refusal");
                continue;
            }
            expect_pf_as(world, fakes.view(), pf, want);
            RC_ASSERT(empty_again(fakes, world, pf, want));
        }
    });
    tally.expect_at_least(
        5, {"planned", "with steps", "refused", "with VFs in use", "refused for VFs in use"});
}

bool mentions(std::vector<VmHostdev> const& devices, Attachment const& lease) {
    return std::ranges::find(devices, VmHostdev{lease.vf_pci, hostdev_alias(lease.id)}) !=
           devices.end();
}

// Every leg that a lease needs is there, also those of the leases that were there before.
void expect_reachable(HostView const& view, DesiredState const& desired, Attachment const& lease) {
    if (!lease.spec.network) return;
    auto const& spec = desired.pfs.at(lease.vf.pf).spec;
    auto const* network = find_network(spec, *lease.spec.network);
    auto const* leg = find_leg(view, {lease.vf.pf, network->vlan});
    RC_ASSERT(leg != nullptr);
    RC_ASSERT(leg->up);
    RC_ASSERT(leg->mtu >= network->mtu);
    RC_ASSERT(std::ranges::count(leg->addresses, network->host_address) == 1);
    if (!lease.settings.mac) return;
    RC_ASSERT(std::ranges::count(leg->peers, PeerEntry{*lease.address, lease.settings.mac}) == 1);
}

void expect_lent(World const& before, HostView const& view, Attachment const& lease,
                 std::vector<std::string> const& remarks) {
    auto const& vf = *find_vf(view, lease.vf);
    RC_ASSERT(vf.driver == "vfio-pci");
    auto const missing = differing(lease.settings, vf.settings);
    if (remarks.empty()) RC_ASSERT(empty(missing));
    auto const& vm = view.hypervisor.vms.at(lease.vm_uuid);
    RC_ASSERT(mentions(vm.live, lease) == lease.live);
    RC_ASSERT(mentions(vm.config, lease) == lease.config);
    expect_reachable(view, before.desired, lease);
    for (auto const& [id, other] : before.desired.attachments)
        expect_reachable(view, before.desired, other);
    for (auto const& [pci, pf] : before.view.kernel.pfs)
        for (auto const& other : pf.vfs)
            if (VfId{pci, other.index} != lease.vf)
                RC_ASSERT(other == *find_vf(view, {pci, other.index}));
}

// Restore puts back what is lent: where a lease stands there is nothing to put back.
void expect_nothing_to_restore(World world, HostView const& view, AttachmentPlan const& planned) {
    auto const& lease = planned.attachment;
    auto const before = plan_restore(world.view, world.desired, lease.vf.pf).value();
    if (!before.steps.empty()) return;  // somebody changed what other leases have
    world.view = view;
    auto& pf = world.desired.pfs.at(lease.vf.pf);
    pf.base = planned.base;
    world.desired.attachments[lease.id] = lease;
    world.desired.attachments[lease.id].state = AttachmentState::attached;
    auto const again = plan_restore(world.view, world.desired, lease.vf.pf).value();
    log(again);
    RC_ASSERT(again.steps.empty());
}

void lend_and_judge(World const& world, AttachmentPlan const& planned, Tally& tally) {
    log(planned.plan);
    expect_touches_nobody_else(world, planned.plan);
    Fakes fakes(world);
    std::vector<Step> undo;
    std::vector<std::string> remarks;
    for (auto const& step : planned.plan.steps) {
        auto const back = inverse(step, fakes.view());
        undo.insert(undo.begin(), back.begin(), back.end());
        auto const done = fakes.perform(step);
        if (done) {
            remarks.insert(remarks.end(), done->remarks.begin(), done->remarks.end());
            continue;
        }
        // What a driver takes is not known beforehand. Then all is put back.
        RC_ASSERT(done.error().problem == Problem::kernel_refused);
        tally.count("refused by the driver");
        for (auto const& one : undo) RC_ASSERT(fakes.perform(one).has_value());
        return expect_same(world.view, fakes.view(), "after a refusal was undone");
    }
    tally.count("lent");
    tally.count("lent beside others", !world.desired.attachments.empty());
    expect_lent(world, fakes.view(), planned.attachment, remarks);
    expect_nothing_to_restore(world, fakes.view(), planned);
}

TEST(PlanAttachmentProperty, LendsAFreeVfOrSaysWhyNot) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto const [world, wishes] = draw(with_wishes<any_attachment>);
        for (auto const& spec : wishes) {
            auto const planned =
                plan_attachment(world.view, world.desired, "bbbb0001", spec, "seed");
            tally.count(planned ? "planned" : "refused");
            if (!planned) {
                expect_says_why(planned.error());
                tally.count("refused for VFs in use",
                            planned.error().problem == Problem::vf_in_use);
                continue;
            }
            lend_and_judge(world, *planned, tally);
        }
    });
    tally.expect_at_least(10, {"refused", "lent", "lent beside others"});
    tally.expect_at_least(1, {"refused by the driver"});
}

}  // namespace
}  // namespace vfmgr
