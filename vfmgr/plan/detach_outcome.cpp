// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vfmgr/plan/plan.hpp"
#include "vfmgr/plan/vf_values.hpp"

namespace vfmgr {
namespace {

// mlx5 keeps the GUIDs of VFs that are gone and gives them to the next VF created in their place
// (vfmgr/kernel/KERNEL.md#guids-outlive-vfs): only a VF that exists can be shown to be clean.
std::vector<std::string> residue_of_a_gone_vf(Attachment const& attachment) {
    if (!attachment.baseline.node_guid && !attachment.baseline.port_guid) return {};
    return {fmt::format("VF {} is gone, and the next VF created in its place gets its GUIDs",
                        to_string(attachment.vf))};
}

template <class Address>
std::optional<Rotated<Address>> rotated_of(Attachment const& attachment, VfSpec const& now,
                                           std::optional<Address> VfSpec::* member) {
    auto const& given = attachment.settings.*member;
    if (!given || given == attachment.baseline.*member) return std::nullopt;
    return Rotated<Address>{*given, now.*member};
}

RotatedAddresses rotated_of(Attachment const& attachment, VfSpec const& now) {
    return {rotated_of(attachment, now, &VfSpec::mac),
            rotated_of(attachment, now, &VfSpec::node_guid),
            rotated_of(attachment, now, &VfSpec::port_guid)};
}

template <class Address>
void note_kept(std::vector<std::string>& residue, Attachment const& attachment, char const* name,
               std::optional<Rotated<Address>> const& rotated) {
    if (rotated && rotated->is == rotated->was)
        residue.push_back(fmt::format("VF {} still has the {} {} of VM {}",
                                      to_string(attachment.vf), name, to_string(rotated->was),
                                      attachment.vm));
}

std::vector<std::string> residue_of(Attachment const& attachment, VfState const& vf,
                                    DetachNotes const& notes) {
    std::vector<std::string> residue;
    // The VF came back during the detach: another program recreated the PF's VFs.
    if (!notes.reset_done_at)
        residue.push_back(fmt::format("VF {} was not reset: it did not exist when the detach began",
                                      to_string(attachment.vf)));
    auto left = differing(attachment.baseline, vf.settings);
    // A network driver of the host may choose a MAC for its VF. The attachment's MAC must not come
    // back.
    if (vf.driver && !names_vfio_driver(*vf.driver) && vf.settings.mac != attachment.settings.mac)
        left.mac.reset();
    if (!empty(left))
        residue.push_back(
            "still to do: " +
            sentence(ConfigureVfs{attachment.vf.pf, {{attachment.vf.index, left}}, {}}));
    // Applies also where there was no baseline to restore because the driver reported none before
    // the attachment.
    auto const rotated = rotated_of(attachment, vf.settings);
    if (!left.mac) note_kept(residue, attachment, "MAC", rotated.mac);
    if (!left.node_guid) note_kept(residue, attachment, "node GUID", rotated.node_guid);
    if (!left.port_guid) note_kept(residue, attachment, "port GUID", rotated.port_guid);
    for (auto const& holder : vf.holders)
        residue.push_back(fmt::format("VF {} is held open by {} (pid {})", to_string(attachment.vf),
                                      holder.comm, holder.pid));
    return residue;
}

Certificate certificate_of(Attachment const& attachment, PfState const& pf, VfState const& vf,
                           DetachNotes const& notes) {
    Certificate certificate;
    certificate.vf = attachment.vf;
    certificate.vf_pci = vf.pci;
    certificate.attachment = attachment.id;
    certificate.vm = attachment.vm;
    certificate.settings = vf.settings;
    certificate.driver = vf.driver;
    certificate.observed_at = pf.observed_at;
    certificate.attached = {attachment.created_at, attachment.operation, attachment.requested_by};
    certificate.detached = notes.detached;
    certificate.reset = VfReset{ResetMethod::flr, *notes.reset_done_at};
    certificate.restored = {only_members_of(attachment.settings, notes.before),
                            only_members_of(attachment.settings, vf.settings)};
    certificate.rotated = rotated_of(attachment, vf.settings);
    certificate.counters = notes.counters;
    return certificate;
}

Error no_certificate(std::string detail, std::string remedy) {
    return {Problem::not_found, std::move(detail), std::move(remedy)};
}

Error why_none(HistoryEvent const& last, std::string const& attachment) {
    VfId const vf{last.pf, last.vf.value_or(0)};
    auto const vm = last.vm.value_or("a VM");
    if (last.kind == EventKind::attach_failed)
        return no_certificate(
            fmt::format("attachment {} never began: it did not attach VF {} to VM {}", attachment,
                        to_string(vf), vm),
            fmt::format("no action is needed; for the reason: vfctl vf history {} {}",
                        to_string(vf.pf), vf.index));
    return no_certificate(
        fmt::format("attachment {} of VM {} ended without a certificate: VF {} no longer existed",
                    attachment, vm, to_string(vf)),
        fmt::format("a VF that is gone holds nothing of the VM; to see what removed it: vfctl vf "
                    "history {} {}",
                    to_string(vf.pf), vf.index));
}

}  // namespace

DetachOutcome detach_outcome(HostView const& after, Attachment const& attachment,
                             DetachNotes const& notes) {
    auto const* const pf = find_pf(after, attachment.vf.pf);
    if (!pf || pf->stale)
        return {{fmt::format("VF {} can't be read: {}", to_string(attachment.vf),
                             pf ? pf->stale_reason : "its PF is gone")},
                {}};
    auto const* const vf = find_vf(after, attachment.vf);
    if (!vf) return {residue_of_a_gone_vf(attachment), {}};
    auto residue = residue_of(attachment, *vf, notes);
    if (!residue.empty()) return {std::move(residue), {}};
    return {{}, certificate_of(attachment, *pf, *vf, notes)};
}

Result<Certificate> find_certificate(DesiredState const& desired,
                                     std::vector<HistoryEvent> const& events,
                                     std::string const& attachment) {
    for (auto const& event : events)
        if (event.certificate && event.certificate->attachment == attachment)
            return *event.certificate;
    if (auto const found = desired.attachments.find(attachment); found != desired.attachments.end())
        return fail(no_certificate(
            fmt::format("attachment {} has not ended ({}): VF {} is attached to VM {}", attachment,
                        enum_name(found->second.state), to_string(found->second.vf),
                        found->second.vm),
            fmt::format("its certificate is issued when it ends: vfctl detach {}", attachment)));
    for (auto const& [vf, quarantine] : desired.quarantine)
        if (quarantine.attachment.id == attachment)
            return fail(no_certificate(
                fmt::format("VF {}, last attached to VM {}, is in quarantine: {}: {}",
                            to_string(vf), quarantine.attachment.vm, quarantine.reason,
                            fmt::join(quarantine.residue, "; ")),
                fmt::format("fix what is named, then lift the quarantine, which issues the "
                            "certificate: vfctl vf lift-quarantine {} {}",
                            to_string(vf.pf), vf.index)));
    for (auto const& event : events)
        if (event.kind == EventKind::detached || event.kind == EventKind::attach_failed)
            return fail(why_none(event, attachment));
    return fail(no_certificate(
        fmt::format("there is no attachment {} and no certificate for it", attachment),
        "vfctl vf history lists the attachments of a VF; the newest 1000 certificates of each VF "
        "are kept"));
}

}  // namespace vfmgr
