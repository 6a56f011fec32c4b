// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vfmgr {
namespace {

Time due_at(Attachment const& attachment, Time now) {
    auto const last =
        attachment.verification ? attachment.verification->started_at : attachment.created_at;
    // The clock was set back: the time since the last run is unknown, so it is due.
    if (last > now) return now;
    return last + std::chrono::seconds(attachment.spec.verify_every_seconds);
}

}  // namespace

std::optional<DueVerification> next_verification(DesiredState const& desired,
                                                 std::map<std::string, Time> const& not_before,
                                                 Time now) {
    std::optional<DueVerification> first;
    for (auto const& [id, attachment] : desired.attachments) {
        if (attachment.spec.verify_every_seconds == 0 ||
            attachment.state != AttachmentState::attached)
            continue;
        auto at = due_at(attachment, now);
        if (auto const put_off = not_before.find(id); put_off != not_before.end())
            at = std::max(at, put_off->second);
        if (!first || at < first->at) first = DueVerification{id, at};
    }
    return first;
}

// The host's address in a network is on IPoIB, and that has the port's GUID.
std::optional<Hindrance> verification_hindrance(PfInfo const& pf) {
    if (pf.link_layer != LinkLayer::infiniband || pf.port_guid) return std::nullopt;
    return Hindrance{fmt::format("{} is an InfiniBand PF without an IPoIB interface, so the host "
                                 "can't answer a VM over it",
                                 display_name(pf)),
                     "load IPoIB on the host: modprobe ib_ipoib"};
}

std::optional<Hindrance> verification_hindrance(HostView const& host,
                                                Attachment const& attachment) {
    auto const* const pf = find_pf(host, attachment.vf.pf);
    if (auto never = pf ? verification_hindrance(pf->info) : std::nullopt) return never;
    if (attachment.holder) return std::nullopt;  // its guest waits for runs, or does not
    auto const found = host.hypervisor.vms.find(attachment.vm_uuid);
    if (found == host.hypervisor.vms.end())
        return Hindrance{fmt::format("libvirt no longer knows VM {}", attachment.vm),
                         "define it again, or detach the VF"};
    auto const& vm = found->second;
    if (vm.state != VmState::running)
        return Hindrance{fmt::format("VM {} is {}, not running", vm.name, enum_name(vm.state)),
                         "no action is needed: it is verified when the VM runs"};
    if (!find_hostdev(vm.live, attachment.vf_pci))
        return Hindrance{
            fmt::format("VM {} runs without VF {}", vm.name, to_string(attachment.vf_pci)),
            "shut the VM down and start it again, so that it gets the VF from its persistent XML; "
            "or detach the VF"};
    return std::nullopt;
}

}  // namespace vfmgr
