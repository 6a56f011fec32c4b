// SPDX-License-Identifier: Apache-2.0
// Properties of every plan for several attachments, whatever the host and the desired state.
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/vfmgr/plan/property.hpp"

namespace vfmgr {
namespace {

using namespace drawn;

std::vector<AttachmentSpec> for_one_vm(std::vector<AttachmentSpec> const& drawn, std::size_t first,
                                       std::size_t count) {
    std::vector<AttachmentSpec> specs;
    for (auto i = first; i < first + count; ++i) specs.push_back(drawn.at(i));
    for (auto& spec : specs) spec.vm = specs.front().vm;
    return specs;
}

void expect_own_everything(AttachmentSetPlan const& set) {
    std::set<VfId> vfs;
    std::set<IpAddress> addresses;
    for (auto const& one : set.attachments) {
        RC_ASSERT(vfs.insert(one.vf).second);
        if (one.address) RC_ASSERT(addresses.insert(*one.address).second);
    }
}

// Nothing of libvirt is done before all of the kernel's, but for the wait for a carrier.
void expect_kernel_first(Plan const& plan) {
    bool plugged = false;
    for (auto const& step : plan.steps) {
        plugged = plugged || as<AttachHostdev>(step);
        RC_ASSERT(!plugged || !std::holds_alternative<KernelStep>(step) || as<AwaitCarrier>(step));
    }
}

void expect_all_attached(HostView const& view, AttachmentSetPlan const& set, bool remarked) {
    for (auto const& one : set.attachments) {
        auto const& vf = *find_vf(view, one.vf);
        RC_ASSERT(vf.driver == one.driver);
        if (!remarked) RC_ASSERT(empty(differing(one.settings, vf.settings)));
        auto const& vm = view.hypervisor.vms.at(one.vm_uuid);
        VmHostdev const device{one.vf_pci, hostdev_alias(one.id)};
        RC_ASSERT((std::ranges::count(vm.live, device) == 1) == one.live);
        RC_ASSERT((std::ranges::count(vm.config, device) == 1) == one.config);
        if (!one.address || !one.settings.mac) continue;
        auto const* const interface =
            find_interface(view, {one.vf.pf, one.settings.vlan && one.settings.vlan->id
                                                 ? std::optional(one.settings.vlan->id)
                                                 : std::nullopt});
        RC_ASSERT(interface != nullptr);
        RC_ASSERT(std::ranges::count(interface->peers, PeerEntry{*one.address, one.settings.mac}) ==
                  1);
    }
}

void attach_all_and_judge(World const& world, AttachmentSetPlan const& set, Tally& tally) {
    log(set.plan);
    expect_touches_nobody_else(world, set.plan);
    expect_own_everything(set);
    expect_kernel_first(set.plan);
    Fakes fakes(world);
    auto const remarks = performed_or_undone(world, fakes, set.plan, tally);
    if (!remarks) return;
    tally.count("attached");
    expect_all_attached(fakes.view(), set, !remarks->empty());
}

TEST(PlanSetProperty, AttachesAllOfThemOrSaysWhyNot) {
    Tally tally;
    rc::detail::checkGTest([&] {
        auto const [world, configured] = draw(with_specs<any_attachment>);
        for (std::size_t n = 0; n < 6; ++n) {
            auto const specs = for_one_vm(configured, n / 2, 2 + n % 2);
            std::vector<std::string> const ids{"bbbb0001", "bbbb0002", "bbbb0003"};
            auto const set = plan_attachments(world.view, world.desired, ids, specs, "seed");
            tally.count(set ? "planned" : "refused");
            if (!set)
                expect_says_why(set.error());
            else
                attach_all_and_judge(world, *set, tally);
        }
    });
    tally.expect_at_least(10, {"refused", "attached"});
}

}  // namespace
}  // namespace vfmgr
