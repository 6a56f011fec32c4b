// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/released.hpp"

#include <fmt/format.h>

namespace vfmgr {
namespace {

constexpr std::string_view metadata_prefix = "metadata:";

}  // namespace

std::string principal_of_metadata(std::string const& vm_uuid) {
    return fmt::format("{}{}", metadata_prefix, vm_uuid);
}

bool is_declared(Attachment const& attachment) {
    return attachment.requested_by && attachment.requested_by->starts_with(metadata_prefix);
}

bool knows_vms(HypervisorView const& view) {
    return !view.stale && view.observed_at != Time{};
}

bool is_released(HostView const& host, Attachment const& attachment) {
    auto const* const vf = find_vf(host, attachment.vf);
    if (vf && !vf->holders.empty()) return false;
    if (attachment.holder) {
        auto const* const pf = find_pf(host, attachment.vf.pf);
        return pf && !pf->stale && vf;
    }
    if (!knows_vms(host.hypervisor)) return false;
    auto const* const vm = find_vm(host, attachment.vm_uuid);
    return !vm || !has_hostdev(vm->live, hostdev_alias(attachment.id), attachment.vf_pci);
}

std::vector<std::string> released(HostView const& host, DesiredState const& desired) {
    std::vector<std::string> ids;
    for (auto const& [id, attachment] : desired.attachments) {
        bool const ends = attachment.state == AttachmentState::detaching || is_declared(attachment);
        if (ends && is_released(host, attachment)) ids.push_back(id);
    }
    return ids;
}

}  // namespace vfmgr
