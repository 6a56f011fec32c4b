// SPDX-License-Identifier: Apache-2.0
#include "api/types/attachment_patch.hpp"

#include <algorithm>
#include <array>

#include "api/types/json.hpp"

namespace vfmgr {
namespace {

constexpr auto detach_first =
    "can't be changed while the VF is attached: detach it, and attach it again";

// What an attachment has besides. A client that sends it means to change it.
constexpr std::array fixed_members{"vm",      "pf",   "vf",          "network",
                                   "address", "pool", "reservation", "persistence"};

void refuse_fixed(JsonReader& reader) {
    if (!reader.json().is_object()) return;
    for (auto const* const member : fixed_members) {
        if (!reader.json().contains(member)) continue;
        reader.accept(member);
        reader.complain(member, detach_first);
    }
}

bool is_null(JsonReader const& reader, char const* key) {
    auto const& json = reader.json();
    return json.is_object() && json.contains(key) && json.at(key).is_null();
}

// qos and proto have a value to return to, which null requests.
template <class T>
void read_with_default(JsonReader& reader, char const* key, std::optional<T>& out, T value) {
    reader.nullable(key, out);
    if (is_null(reader, key)) out = value;
}

}  // namespace

bool can_change_attached(VfAttribute attribute) {
    switch (attribute) {
        case VfAttribute::mac:
        case VfAttribute::vlan:
        case VfAttribute::max_tx_rate:
        case VfAttribute::min_tx_rate:
        case VfAttribute::spoofchk:
        case VfAttribute::link_state:
        case VfAttribute::query_rss:
        case VfAttribute::trust:
            return true;
        case VfAttribute::node_guid:
        case VfAttribute::port_guid:
        case VfAttribute::msix_vectors:
        case VfAttribute::roce:
            return false;
    }
    return false;
}

std::vector<VfAttribute> named_by(VfPatch const& patch) {
    std::vector<VfAttribute> named;
    for_each_member([&](VfAttribute attribute, auto member) {
        bool const vlan = attribute == VfAttribute::vlan && patch.vlan;
        bool const removed = std::ranges::find(patch.removed, attribute) != patch.removed.end();
        if ((patch.set.*member) || vlan || removed) named.push_back(attribute);
    });
    return named;
}

template <class F, Of<VlanPatch> V>
void fields(F& f, V& vlan) {
    f.maybe("id", vlan.id);
    f.maybe("qos", vlan.qos);
    f.maybe("proto", vlan.proto);
}

namespace {

void read_vlan_patch(JsonReader& reader, VlanPatch& vlan) {
    reader.maybe("id", vlan.id);
    read_with_default<std::uint8_t>(reader, "qos", vlan.qos, Vlan{}.qos);
    read_with_default(reader, "proto", vlan.proto, Vlan{}.proto);
    if (vlan.id.value_or(0) > 4094) reader.complain("id", "must be from 0 to 4094; 0 means no tag");
    if (vlan.qos.value_or(0) > 7) reader.complain("qos", "must be from 0 to 7");
}

}  // namespace

template <>
void Json<VfPatch>::write(nlohmann::json& out, VfPatch const& patch) {
    JsonWriter(out).members_of(patch.set);
    if (patch.vlan) {
        auto& vlan = out["vlan"];
        JsonWriter writer(vlan);
        fields(writer, *patch.vlan);
    }
    for (auto const attribute : patch.removed) out[std::string(enum_name(attribute))] = nullptr;
}

template <>
void Json<VfPatch>::read(JsonReader& reader, VfPatch& patch) {
    for_each_member([&](VfAttribute attribute, auto member) {
        auto const* const key = enum_name(attribute).data();
        if (!reader.json().is_object() || !reader.json().contains(key)) return;
        if (!can_change_attached(attribute)) {
            reader.accept(key);
            reader.complain(key, detach_first);
        } else if (is_null(reader, key)) {
            reader.accept(key);
            patch.removed.push_back(attribute);
        } else if (attribute == VfAttribute::vlan) {
            reader.read_by(key, patch.vlan.emplace(), read_vlan_patch);
        } else {
            reader.maybe(key, patch.set.*member);
        }
    });
    check(reader, patch.set);
}

template <class F, Of<AttachmentPatch> V>
void fields(F& f, V& patch) {
    f.defaulted("settings", patch.settings);
    f.maybe("best_effort", patch.best_effort);
    f.maybe("verify", patch.verify);
    f.maybe("verify_timeout_seconds", patch.verify_timeout_seconds);
    f.maybe("verify_profile", patch.verify_profile);
    f.defaulted("allow_reset", patch.allow_reset);
}

void check(JsonReader& reader, AttachmentPatch const& patch) {
    refuse_fixed(reader);
    if (patch.best_effort && reader.clean("best_effort"))
        check_best_effort(reader, *patch.best_effort);
    auto const seconds = patch.verify_timeout_seconds.value_or(120);
    if (seconds < 5 || seconds > 3600)
        reader.complain("verify_timeout_seconds", "must be from 5 to 3600");
}

template struct Json<AttachmentPatch>;

}  // namespace vfmgr
