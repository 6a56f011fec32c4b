// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/near.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

// The steps of a set, by phase: what fails in the kernel, fails before a VM has got anything.
struct Phases {
    std::map<PciAddress, std::vector<Step>> links;
    std::vector<Step> unbind, settings, bind, vsock, plug, verify;
};

// One write for all VFs of a PF that become the same. Those of an attachment are in the step's
// order: it ends with the step that all are merged into.
void add_bind(std::vector<Step>& steps, BindVfs const& bind) {
    for (auto& step : steps)
        if (auto same = *as<BindVfs>(step); same.pf == bind.pf && same.driver == bind.driver) {
            same.vfs.insert(same.vfs.end(), bind.vfs.begin(), bind.vfs.end());
            step = KernelStep(std::move(same));
            return;
        }
    steps.emplace_back(bind);
}

// What one request's driver may refuse, another's may not.
void add_settings(std::vector<Step>& steps, ConfigureVfs const& configure) {
    for (auto& step : steps)
        if (auto same = *as<ConfigureVfs>(step);
            same.pf == configure.pf && same.best_effort == configure.best_effort) {
            same.changes.insert(same.changes.end(), configure.changes.begin(),
                                configure.changes.end());
            step = KernelStep(std::move(same));
            return;
        }
    steps.emplace_back(configure);
}

// The later of two attachments on a PF was planned with the earlier one: its links are those of
// both.
void add(Phases& phases, AttachmentPlan const& one) {
    std::vector<Step> links;
    for (auto const& step : one.plan.steps) {
        if (auto const* const bind = as<BindVfs>(step))
            add_bind(bind->driver ? phases.bind : phases.unbind, *bind);
        else if (auto const* const configure = as<ConfigureVfs>(step))
            add_settings(phases.settings, *configure);
        else if (as<AddVsock>(step))
            phases.vsock.push_back(step);
        else if (as<AttachHostdev>(step) || as<AttachExternal>(step))
            phases.plug.push_back(step);
        else if (as<AwaitVerification>(step))
            phases.verify.push_back(step);
        else if (!as<AwaitCarrier>(step))
            links.push_back(step);
    }
    phases.links.insert_or_assign(one.attachment.vf.pf, std::move(links));
}

std::vector<Step> in_order(Phases phases) {
    std::vector<Step> steps;
    auto const append = [&](std::vector<Step>& part) {
        std::ranges::move(part, std::back_inserter(steps));
    };
    for (auto& [pf, links] : phases.links) append(links);
    for (auto* const part :
         {&phases.unbind, &phases.settings, &phases.bind, &phases.vsock, &phases.plug})
        append(*part);
    await_carrier(steps);
    append(phases.verify);
    return steps;
}

Error of_which(Error error, std::size_t which, std::size_t count) {
    error.detail = fmt::format("attachment {} of {}: {}", which + 1, count, error.detail);
    for (auto& violation : error.violations)
        violation.pointer = fmt::format("/attachments/{}{}", which, violation.pointer);
    return error;
}

// VMADDR_CID_ANY of linux/vm_sockets.h, which no VM has: libvirt chooses when it adds the device.
constexpr std::uint32_t cid_to_come = 0xffffffff;

// Adds what the next one of the set must know of this one.
void take_up(HostView& host, DesiredState& desired, AttachmentPlan const& one) {
    auto const& attachment = one.attachment;
    desired.attachments.insert_or_assign(attachment.id, attachment);
    desired.pfs.at(attachment.vf.pf).base = one.base;
    if (attachment.holder) return;
    auto& vm = host.hypervisor.vms.at(attachment.vm_uuid);
    for (auto const& step : one.plan.steps)
        if (auto const* const vsock = as<AddVsock>(step)) {
            vm.has_vsock = true;
            if (vsock->live) {
                vm.vsock_cid = cid_to_come;
                --vm.free_pcie_ports;
            }
        }
    if (attachment.live) --vm.free_pcie_ports;
    if (auto const& address = attachment.spec.guest_address) {
        std::erase(vm.free_live, *address);
        std::erase(vm.free_config, *address);
    }
}

Result<void> check_one_vm(std::vector<Attachment> const& attachments) {
    for (auto const& one : attachments)
        if (one.vm_uuid != attachments.front().vm_uuid || one.holder != attachments.front().holder)
            return fail(Problem::invalid_request,
                        fmt::format("a request attaches to one VM, and this one names {} and {}",
                                    attachments.front().vm, one.vm),
                        "make a request for each VM; a holder has one uid");
    return {};
}

// The arguments of plan_attachments().
struct Asked {
    HostView const& host;
    DesiredState const& desired;
    std::vector<std::string> const& ids;
    std::vector<AttachmentSpec> const& specs;
    std::string_view host_seed;
};
using NearVfs = std::vector<std::optional<NearVf>>;

// `which`: the number of the refused request.
struct RefusedRequest {
    std::size_t which;
    Error error;
};
using SetOrRefused = tl::expected<AttachmentSetPlan, RefusedRequest>;

// Requests with a VF chosen for them come first: the others leave those alone.
std::vector<std::size_t> order_of(NearVfs const& near) {
    std::vector<std::size_t> order;
    for (bool const placed : {true, false})
        for (std::size_t i = 0; i < near.size(); ++i)
            if (near[i].has_value() == placed) order.push_back(i);
    return order;
}

Result<AttachmentPlan> plan_one(Asked const& asked, std::size_t which, NearVfs const& near,
                                HostView const& host, DesiredState const& desired) {
    auto const& id = asked.ids[which];
    auto const& spec = asked.specs[which];
    if (near[which]) return plan_near(host, desired, id, spec, *near[which], asked.host_seed);
    return plan_attachment(host, desired, id, spec, asked.host_seed);
}

SetOrRefused plan_set(Asked const& asked, NearVfs const& near) {
    AttachmentSetPlan set;
    set.attachments.resize(asked.specs.size());
    Phases phases;
    HostView so_far = asked.host;
    DesiredState then = asked.desired;
    for (auto const i : order_of(near)) {
        auto one = plan_one(asked, i, near, so_far, then);
        if (!one) return tl::unexpected(RefusedRequest{i, std::move(one.error())});
        take_up(so_far, then, *one);
        add(phases, *one);
        for (auto& note : one->plan.notes)
            set.plan.notes.push_back(fmt::format("VF {}: {}", to_string(one->attachment.vf), note));
        auto& radius = one->plan.blast_radius;
        std::ranges::move(radius, std::back_inserter(set.plan.blast_radius));
        set.bases.insert_or_assign(one->attachment.vf.pf, one->base);
        set.attachments[i] = std::move(one->attachment);
    }
    set.plan.steps = in_order(std::move(phases));
    return set;
}

// The plan of one is not reordered, and its notes need not say which VF they are about.
SetOrRefused plan_only_one(Asked const& asked, NearVfs const& near) {
    auto one = plan_one(asked, 0, near, asked.host, asked.desired);
    if (!one) return tl::unexpected(RefusedRequest{0, std::move(one.error())});
    auto const pf = one->attachment.vf.pf;
    return AttachmentSetPlan{{std::move(one->attachment)}, {{pf, one->base}}, std::move(one->plan)};
}

}  // namespace

// A PF whose plan is refused is left out, and all are placed again.
Result<AttachmentSetPlan> plan_attachments(HostView const& host, DesiredState const& desired,
                                           std::vector<std::string> const& ids,
                                           std::vector<AttachmentSpec> const& specs,
                                           std::string_view host_seed) {
    Asked const asked{host, desired, ids, specs, host_seed};
    auto const count = specs.size();
    RefusedPfs refused;
    while (true) {
        VFMGR_TRY(NearVfs const near, near_vfs(host, desired, specs, refused));
        auto set = count == 1 ? plan_only_one(asked, near) : plan_set(asked, near);
        if (set) {
            VFMGR_CHECK(check_one_vm(set->attachments));
            return std::move(*set);
        }
        auto& [which, error] = set.error();
        if (near[which] && !specs[which].pf)
            refused.emplace(near[which]->vf.pf, std::move(error));
        else
            return fail(count == 1 ? std::move(error) : of_which(std::move(error), which, count));
    }
}

}  // namespace vfmgr
