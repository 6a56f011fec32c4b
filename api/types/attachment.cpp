// SPDX-License-Identifier: Apache-2.0
#include "api/types/attachment.hpp"

#include <algorithm>
#include <set>

#include "api/types/json.hpp"
#include "api/types/network.hpp"
#include "api/types/text.hpp"

namespace vfmgr {

template <class F, Of<ExternalHolder> V>
void fields(F& f, V& holder) {
    f.value("kind", holder.kind);
    f.value("name", holder.name);
    f.maybe("uid", holder.uid);
}

template <class F, Of<HolderAccess> V>
void fields(F& f, V& access) {
    f.nullable("group", access.group);
    f.nullable("device", access.device);
    f.value("qemu", access.qemu);
}

template <class F, Of<AttachmentSpec> V>
void fields(F& f, V& spec) {
    f.defaulted("vm", spec.vm);  // written with a holder, too: an earlier vfctl requires it
    f.maybe("pf", spec.pf);
    f.maybe("vf", spec.vf);
    f.maybe("network", spec.network);
    f.maybe("address", spec.address);
    f.defaulted("settings", spec.settings);
    f.defaulted("best_effort", spec.best_effort);
    f.defaulted("persistence", spec.persistence);
    f.maybe("verify", spec.verify);
    f.defaulted("verify_timeout_seconds", spec.verify_timeout_seconds);
    f.maybe("verify_profile", spec.verify_profile);
    f.defaulted("verify_every_seconds", spec.verify_every_seconds);
    f.maybe("pool", spec.pool);
    f.maybe("reservation", spec.reservation);
    f.maybe("guest_address", spec.guest_address);
    f.maybe("add_ports", spec.add_ports);
    f.maybe("add_vsock", spec.add_vsock);
    f.maybe("guest_plane", spec.guest_plane);
    f.maybe("near", spec.near);
    f.maybe("holder", spec.holder);
    f.maybe("adopt", spec.adopt);
}

template <class F, Of<Candidate> V>
void fields(F& f, V& candidate) {
    f.value("pf", candidate.pf);
    f.value("chosen", candidate.chosen);
    f.value("reason", candidate.reason);
    f.maybe("distance", candidate.distance);
}

template <class F, Of<NearGpu> V>
void fields(F& f, V& near) {
    f.value("gpu", near.gpu);
    f.value("distance", near.distance);
}

namespace {

// The spec was checked when it was accepted. A later vfmgr with stricter rules must still be able
// to open the store.
void read_stored_spec(JsonReader& reader, AttachmentSpec& spec) {
    fields(reader, spec);
}

}  // namespace

void check_best_effort(JsonReader& reader, std::vector<std::string> const& names) {
    std::set<std::string_view> known;
    for (std::size_t i = 0; i < names.size(); ++i) {
        auto const pointer = reader.member_of("best_effort", i);
        if (!enum_value<VfAttribute>(names[i]))
            reader.complain(pointer, fmt::format("must be a member of settings: {}",
                                                 enum_choices<VfAttribute>()));
        else if (!known.insert(names[i]).second)
            reader.complain(pointer, "is listed twice");
    }
}

namespace {

void check_pf(JsonReader& reader, AttachmentSpec const& spec) {
    if (!spec.pf && !spec.network && !spec.pool && !spec.reservation && !spec.near)
        reader.complain("pf", "is required, or a network, a pool, a reservation or near");
    if (spec.vf && !spec.pf) reader.complain("vf", "requires the PF that it is of");
    if (spec.pool && spec.reservation)
        reader.complain("pool", "is the reservation's; leave it out");
}

// A pool or reservation may have a network.
void check_network(JsonReader& reader, AttachmentSpec const& spec) {
    if (spec.network || spec.pool || spec.reservation) return;
    if (spec.verify.value_or(VerifyMode::none) != VerifyMode::none)
        reader.complain("verify", "requires a network: RDMA is proved over an address in it");
    if (spec.verify_every_seconds > 0)
        reader.complain("verify_every_seconds",
                        "requires a network: RDMA is proved over an address in it");
    if (spec.address) reader.complain("address", "requires a network that it belongs to");
}

}  // namespace

void check_proof(JsonReader& reader, AttachmentSpec const& spec) {
    if (reader.clean("network", "pool", "reservation", "near")) check_network(reader, spec);
    if (spec.network && !can_be_a_networks(*spec.network))
        reader.complain("network", rule_of_network_names);
    if (spec.verify_timeout_seconds < 5 || spec.verify_timeout_seconds > 3600)
        reader.complain("verify_timeout_seconds", "must be from 5 to 3600");
    auto const every = spec.verify_every_seconds;
    if (every != 0 && (every < 60 || every > 30 * 24 * 3600))
        reader.complain("verify_every_seconds",
                        "must be from 60 to 2592000 (30 days), or 0 (never)");
}

template <class F, Of<Attachment> V>
void fields(F& f, V& attachment) {
    f.value("id", attachment.id);
    f.read_by("spec", attachment.spec, read_stored_spec);
    f.value("vf", attachment.vf);
    f.value("vf_pci", attachment.vf_pci);
    f.defaulted("driver", attachment.driver);  // absent in older attachments in the store
    f.value("vm_uuid", attachment.vm_uuid);
    f.value("vm", attachment.vm);
    // Resolved settings may hold observed values, so the rules for requested values don't apply.
    f.read_by("settings", attachment.settings, read_reported);
    f.read_by("baseline", attachment.baseline, read_reported);
    f.nullable("address", attachment.address);
    f.value("live", attachment.live);
    f.value("config", attachment.config);
    f.value("state", attachment.state);
    f.nullable("verification", attachment.verification);
    f.value("created_at", attachment.created_at);
    f.nullable("operation", attachment.operation);
    f.nullable("requested_by", attachment.requested_by);
    f.defaulted("candidates", attachment.candidates);
    f.nullable("near", attachment.near);
    f.maybe("holder", attachment.holder);
    f.maybe("node_owner", attachment.node_owner);
    f.maybe("access", attachment.access);
}

bool can_be_a_holders(std::string_view name) {
    return is_plain_name(name, "-_.:", holder_name_max);
}

std::string external_key(std::string_view holder) {
    return fmt::format("external:{}", holder);
}

namespace {
constexpr std::string_view on_tcp = "tcp:";
}  // namespace

bool is_on_tcp(AttachmentSpec const& spec) {
    return spec.guest_plane == GuestTransport::tcp;
}

std::string guest_key(Attachment const& attachment) {
    return is_on_tcp(attachment.spec) ? std::string(on_tcp) + attachment.id : attachment.vm_uuid;
}

std::string attachment_of_guest(std::string_view key) {
    return key.starts_with(on_tcp) ? std::string(key.substr(on_tcp.size())) : std::string();
}

bool is_attachment_id(std::string_view text) {
    return text.size() == 8 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string hostdev_alias(std::string_view attachment_id) {
    return fmt::format("ua-vfmgr-{}", attachment_id);
}

// Root needs no node of its own, and the last number is no user: chown() takes it for "none".
void check(JsonReader& reader, ExternalHolder const& holder) {
    if (reader.clean("name") && !can_be_a_holders(holder.name))
        reader.complain("name", rule_of_holder_names);
    if (holder.uid && (*holder.uid == 0 || *holder.uid == UINT32_MAX))
        reader.complain("uid", "must be from 1 to 4294967294; leave it out for root");
}

void check(JsonReader& reader, AttachmentSpec const& spec) {
    constexpr std::size_t vm_characters_max = 128;
    if (reader.clean("vm", "holder") && spec.vm.empty() && !spec.holder)
        reader.complain("vm", "must name a VM, by name or UUID; or name a holder");
    if (!spec.vm.empty() && spec.holder)
        reader.complain("holder", "is instead of a VM of libvirt; leave vm out");
    for (auto const& [key, given] : {std::pair{"guest_address", spec.guest_address.has_value()},
                                     {"add_ports", spec.add_ports.has_value()},
                                     {"add_vsock", spec.add_vsock.has_value()}})
        if (given && spec.holder) reader.complain(key, "is for a VM of libvirt");
    if (spec.adopt) reader.complain("adopt", "is of POST /v1/vms/{vm}/adoptions");
    if (reader.clean("network", "pool", "reservation", "near", "pf")) check_pf(reader, spec);
    check_proof(reader, spec);
    if (reader.clean("best_effort")) check_best_effort(reader, spec.best_effort);
    check_text(reader, "vm", spec.vm, vm_characters_max);
    for (auto const& [key, name] :
         {std::pair{"pool", &spec.pool}, {"reservation", &spec.reservation}})
        if (*name && !can_be_a_networks(**name)) reader.complain(key, rule_of_network_names);
}

void check(JsonReader& reader, Attachment const& attachment) {
    if (reader.clean() && !is_attachment_id(attachment.id))
        reader.complain("id", "must be 8 hexadecimal digits");
}

template struct Json<AttachmentSpec>;
template struct Json<Attachment>;

template <class F, class V>
    requires(Of<V, Rotated<MacAddress>> || Of<V, Rotated<Guid>>)
void fields(F& f, V& rotated) {
    f.value("was", rotated.was);
    f.nullable("is", rotated.is);
}

template <class F, Of<CertificateMark> V>
void fields(F& f, V& mark) {
    f.nullable("at", mark.at);
    f.nullable("operation", mark.operation);
    f.nullable("requested_by", mark.requested_by);
}

template <class F, Of<VfReset> V>
void fields(F& f, V& reset) {
    f.value("method", reset.method);
    f.value("done_at", reset.done_at);
}

template <class F, Of<Restored> V>
void fields(F& f, V& restored) {
    f.read_by("was", restored.was, read_reported);
    f.read_by("is", restored.is, read_reported);
}

template <class F, Of<RotatedAddresses> V>
void fields(F& f, V& rotated) {
    f.nullable("mac", rotated.mac);
    f.nullable("node_guid", rotated.node_guid);
    f.nullable("port_guid", rotated.port_guid);
}

template <class F, Of<Certificate> V>
void fields(F& f, V& certificate) {
    f.value("vf", certificate.vf);
    f.value("vf_pci", certificate.vf_pci);
    f.value("attachment", certificate.attachment);
    f.value("vm", certificate.vm);
    f.read_by("settings", certificate.settings, read_reported);
    f.nullable("driver", certificate.driver);
    f.value("observed_at", certificate.observed_at);
    // Certificates from earlier vfmgrds have none of these.
    f.defaulted("attached", certificate.attached);
    f.defaulted("detached", certificate.detached);
    f.nullable("reset", certificate.reset);
    f.defaulted("restored", certificate.restored);
    f.defaulted("rotated", certificate.rotated);
    f.nullable("counters", certificate.counters);
}

template struct Json<Certificate>;

}  // namespace vfmgr
