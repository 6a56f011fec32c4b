// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/gone.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "vfmgr/plan/pf_standing.hpp"

namespace vfmgr {
namespace {

// Compares the alias alone: another device of another owner may be at the VF's address by now.
bool has_alias(std::vector<VmHostdev> const& hostdevs, Attachment const& attachment) {
    return std::ranges::find(hostdevs, hostdev_alias(attachment.id), &VmHostdev::alias) !=
           hostdevs.end();
}

Result<void> require_gone(HostView const& host, DesiredState const& desired, PciAddress const& pf) {
    auto const kept = kept_pfs(desired);
    if (!std::ranges::binary_search(kept, pf))
        return fail(Problem::not_found,
                    fmt::format("no state is stored for a PF at {}", to_string(pf)),
                    "no action is needed");
    auto const standing = standing_of(host.kernel, desired, pf);
    // A PF with another device in its place is just as gone.
    if (standing.is == Standing::gone || (standing.is == Standing::renumbered && standing.other &&
                                          !standing.now_at && host.kernel.complete))
        return {};
    if (auto wrong = wrong_standing(standing, pf)) return fail(std::move(*wrong));
    if (standing.is == Standing::unknown)
        return fail(
            Problem::unavailable,
            fmt::format("it is not known whether {} is gone: it was not read", to_string(pf)),
            "end what holds its VFs, or reboot the host; then check again: vfctl pf list");
    return fail(Problem::conflict,
                standing.is == Standing::driver_unbound
                    ? fmt::format("{} is on this host, without a driver", to_string(pf))
                    : fmt::format("{} is on this host", to_string(pf)),
                standing.is == Standing::driver_unbound
                    ? fmt::format("bind it: echo {} > /sys/bus/pci/drivers_probe", to_string(pf))
                    : "end its attachments one by one: vfctl detach ATTACHMENT");
}

Result<void> require_libvirt(HostView const& host) {
    if (!host.hypervisor.stale) return {};
    return fail(Problem::unavailable,
                fmt::format("libvirt can't be queried: {}", host.hypervisor.stale_reason),
                "start libvirtd and try again");
}

std::string reserved(Attachment const& attachment) {
    std::vector<std::string> what;
    auto const& settings = attachment.settings;
    if (settings.mac) what.push_back("MAC " + to_string(*settings.mac));
    if (settings.port_guid) what.push_back("GUID " + to_string(*settings.port_guid));
    if (attachment.address) what.push_back("address " + to_string(*attachment.address));
    return fmt::format("{}", fmt::join(what, ", "));
}

}  // namespace

std::vector<Attachment> attachments_of_pf(DesiredState const& desired, PciAddress const& pf) {
    std::vector<Attachment> attached;
    for (auto const& [id, attachment] : desired.attachments)
        if (attachment.vf.pf == pf) attached.push_back(attachment);
    for (auto const& [vf, quarantine] : desired.quarantine)
        if (vf.pf == pf) attached.push_back(quarantine.attachment);
    std::ranges::sort(attached, {},
                      [](Attachment const& attachment) { return attachment.vf.index; });
    return attached;
}

Result<Plan> plan_gone(HostView const& host, DesiredState const& desired, PciAddress const& pf) {
    VFMGR_CHECK(require_gone(host, desired, pf));
    VFMGR_CHECK(require_libvirt(host));
    Plan plan;
    for (auto const& attachment : attachments_of_pf(desired, pf)) {
        auto const* const vm = find_vm(host, attachment.vm_uuid);
        if (auto const kept = reserved(attachment); !kept.empty())
            plan.notes.push_back(
                fmt::format("{} of VF {} stays reserved", kept, to_string(attachment.vf)));
        if (desired.attachments.contains(attachment.id))
            plan.blast_radius.push_back(fmt::format("attachment {} of VM {} ends: VF {}",
                                                    attachment.id, attachment.vm,
                                                    to_string(attachment.vf)));
        if (!vm) {
            plan.notes.push_back(fmt::format("VM {} is gone", attachment.vm));
            continue;
        }
        DetachHostdev const detach{vm->uuid,
                                   attachment.id,
                                   attachment.vf,
                                   attachment.vf_pci,
                                   has_alias(vm->live, attachment),
                                   has_alias(vm->config, attachment),
                                   vm->name};
        if (detach.live || detach.config) plan.steps.emplace_back(detach);
    }
    plan.notes.push_back(
        fmt::format("if it does not come back: vfctl pf confirm-gone {}", to_string(pf)));
    return plan;
}

Result<Plan> plan_gone_confirmed(HostView const& host, DesiredState const& desired,
                                 PciAddress const& pf) {
    VFMGR_CHECK(require_gone(host, desired, pf));
    VFMGR_CHECK(require_libvirt(host));
    Plan plan;
    for (auto const& attachment : attachments_of_pf(desired, pf)) {
        if (desired.attachments.contains(attachment.id))
            return fail(Problem::conflict,
                        fmt::format("VF {} is attached to VM {} (attachment {})",
                                    to_string(attachment.vf), attachment.vm, attachment.id),
                        fmt::format("end it first: vfctl pf gone {}", to_string(pf)));
        if (auto const* const vm = find_vm(host, attachment.vm_uuid);
            vm && (has_alias(vm->live, attachment) || has_alias(vm->config, attachment)))
            return fail(
                Problem::vf_in_use,
                fmt::format("VM {} still has VF {} in its XML", vm->name, to_string(attachment.vf)),
                fmt::format("take it out: vfctl pf gone {}", to_string(pf)));
        if (auto const kept = reserved(attachment); !kept.empty())
            plan.blast_radius.push_back(
                fmt::format("{} of VM {} may be assigned to another VF", kept, attachment.vm));
    }
    plan.blast_radius.push_back(fmt::format("the spec of {} is forgotten", to_string(pf)));
    return plan;
}

}  // namespace vfmgr
