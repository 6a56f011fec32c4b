// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "vfmgr/plan/plan.hpp"
#include "vfmgr/plan/vf_values.hpp"

namespace vfmgr {
namespace {

// mlx5 keeps the GUIDs of VFs that are gone and gives them to the VF made next in their place
// (kernel-and-libvirt.md, 4): only a VF that is there can be shown to be clean.
std::vector<std::string> residue_of_a_gone_vf(Attachment const& lease) {
    if (!lease.baseline.node_guid && !lease.baseline.port_guid) return {};
    return {fmt::format("VF {} is gone, and the one made next in its place gets its GUIDs",
                        to_string(lease.vf))};
}

template <class Address>
std::optional<Rotated<Address>> rotated_of(Attachment const& lease, VfSpec const& now,
                                           std::optional<Address> VfSpec::* member) {
    auto const& given = lease.settings.*member;
    if (!given || given == lease.baseline.*member) return std::nullopt;
    return Rotated<Address>{*given, now.*member};
}

RotatedAddresses rotated_of(Attachment const& lease, VfSpec const& now) {
    return {rotated_of(lease, now, &VfSpec::mac), rotated_of(lease, now, &VfSpec::node_guid),
            rotated_of(lease, now, &VfSpec::port_guid)};
}

template <class Address>
void note_kept(std::vector<std::string>& residue, Attachment const& lease, char const* name,
               std::optional<Rotated<Address>> const& rotated) {
    if (rotated && rotated->is == rotated->was)
        residue.push_back(fmt::format("VF {} still has the {} {} of VM {}", to_string(lease.vf),
                                      name, to_string(rotated->was), lease.vm_name));
}

std::vector<std::string> residue_of(Attachment const& lease, VfState const& vf,
                                    ReleaseNotes const& notes) {
    std::vector<std::string> residue;
    // It came back while the lease ended, from whoever made the PF's VFs anew.
    if (!notes.reset_done_at)
        residue.push_back(fmt::format(
            "VF {} was not reset: it was not there when the release began", to_string(lease.vf)));
    auto left = differing(lease.baseline, vf.settings);
    // A network driver of the host's may choose an address for its VF; one that was lent may not
    // come back.
    if (vf.driver && !names_vfio_driver(*vf.driver) && vf.settings.mac != lease.settings.mac)
        left.mac.reset();
    if (!empty(left))
        residue.push_back("still to do: " +
                          sentence(ConfigureVfs{lease.vf.pf, {{lease.vf.index, left}}, {}}));
    // Also where nothing was to be put back, since the driver told none before the lease.
    auto const rotated = rotated_of(lease, vf.settings);
    if (!left.mac) note_kept(residue, lease, "MAC", rotated.mac);
    if (!left.node_guid) note_kept(residue, lease, "node GUID", rotated.node_guid);
    if (!left.port_guid) note_kept(residue, lease, "port GUID", rotated.port_guid);
    for (auto const& holder : vf.holders)
        residue.push_back(fmt::format("VF {} is held open by {} (pid {})", to_string(lease.vf),
                                      holder.comm, holder.pid));
    return residue;
}

Certificate certificate_of(Attachment const& lease, PfState const& pf, VfState const& vf,
                           ReleaseNotes const& notes) {
    Certificate certificate;
    certificate.vf = lease.vf;
    certificate.vf_pci = vf.pci;
    certificate.attachment = lease.id;
    certificate.vm_name = lease.vm_name;
    certificate.settings = vf.settings;
    certificate.driver = vf.driver;
    certificate.seen_at = pf.observed_at;
    certificate.lent = {lease.created_at, lease.operation, lease.requested_by};
    certificate.released = notes.released;
    certificate.reset = VfReset{ResetMethod::flr, *notes.reset_done_at};
    certificate.put_back = {only_members_of(lease.settings, notes.before),
                            only_members_of(lease.settings, vf.settings)};
    certificate.rotated = rotated_of(lease, vf.settings);
    certificate.counters = notes.counters;
    return certificate;
}

Error no_certificate(std::string detail, std::string remedy) {
    return {Problem::not_found, std::move(detail), std::move(remedy)};
}

Error why_none(HistoryEvent const& last, std::string const& attachment) {
    VfId const vf{last.pf, last.vf.value_or(0)};
    auto const vm_name = last.vm_name.value_or("a VM");
    if (last.kind == EventKind::lending_failed)
        return no_certificate(
            fmt::format("attachment {} did not begin: VM {} never had VF {} by it", attachment,
                        vm_name, to_string(vf)),
            fmt::format("nothing is to be done; why it did not: vfctl vf history {} {}",
                        to_string(vf.pf), vf.index));
    return no_certificate(
        fmt::format("attachment {} of VM {} ended without a certificate: VF {} was no more",
                    attachment, vm_name, to_string(vf)),
        fmt::format("what is gone holds nothing of the VM's; who took it: vfctl vf history {} {}",
                    to_string(vf.pf), vf.index));
}

}  // namespace

HandOver hand_over(HostView const& after, Attachment const& lease, ReleaseNotes const& notes) {
    auto const* const pf = find_pf(after, lease.vf.pf);
    if (!pf || pf->stale)
        return {{fmt::format("VF {} can't be looked at: {}", to_string(lease.vf),
                             pf ? pf->stale_reason : "its PF is gone")},
                {}};
    auto const* const vf = find_vf(after, lease.vf);
    if (!vf) return {residue_of_a_gone_vf(lease), {}};
    auto residue = residue_of(lease, *vf, notes);
    if (!residue.empty()) return {std::move(residue), {}};
    return {{}, certificate_of(lease, *pf, *vf, notes)};
}

Result<Certificate> find_certificate(DesiredState const& desired,
                                     std::vector<HistoryEvent> const& events,
                                     std::string const& attachment) {
    for (auto const& event : events)
        if (event.certificate && event.certificate->attachment == attachment)
            return *event.certificate;
    if (auto const lease = desired.attachments.find(attachment); lease != desired.attachments.end())
        return fail(no_certificate(
            fmt::format("attachment {} goes on ({}): VF {} is lent to VM {}", attachment,
                        enum_name(lease->second.state), to_string(lease->second.vf),
                        lease->second.vm_name),
            fmt::format("its certificate is made when it ends: vfctl detach {}", attachment)));
    for (auto const& [vf, quarantine] : desired.quarantine)
        if (quarantine.attachment.id == attachment)
            return fail(no_certificate(
                fmt::format("VF {}, which VM {} gave back, is in quarantine: {}: {}", to_string(vf),
                            quarantine.attachment.vm_name, quarantine.reason,
                            fmt::join(quarantine.residue, "; ")),
                fmt::format("put right what is named, then lift it, which makes one: "
                            "vfctl vf release-quarantine {} {}",
                            to_string(vf.pf), vf.index)));
    for (auto const& event : events)
        if (event.kind == EventKind::returned || event.kind == EventKind::lending_failed)
            return fail(why_none(event, attachment));
    return fail(no_certificate(
        fmt::format("there is no attachment {}, nor a certificate of it", attachment),
        "vfctl vf history names the attachments that a VF had; of each VF the newest 1000 "
        "certificates are kept"));
}

}  // namespace vfmgr
