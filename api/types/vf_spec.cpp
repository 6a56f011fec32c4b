// SPDX-License-Identifier: Apache-2.0
#include "api/types/vf_spec.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

namespace {

// The members in the order of vf_spec_members, each with its name.
template <Of<VfSpec> V, class Visit>
void members(V& spec, Visit visit) {
    visit("mac", spec.mac);
    visit("vlan", spec.vlan);
    visit("spoofchk", spec.spoofchk);
    visit("trust", spec.trust);
    visit("link_state", spec.link_state);
    visit("min_tx_rate_mbps", spec.min_tx_rate_mbps);
    visit("max_tx_rate_mbps", spec.max_tx_rate_mbps);
    visit("node_guid", spec.node_guid);
    visit("port_guid", spec.port_guid);
}

}  // namespace

VfSpec overlay(VfSpec base, VfSpec const& over) {
    auto const take = [](auto& member, auto const& wanted) {
        if (wanted) member = wanted;
    };
    take(base.mac, over.mac);
    take(base.vlan, over.vlan);
    take(base.spoofchk, over.spoofchk);
    take(base.trust, over.trust);
    take(base.link_state, over.link_state);
    take(base.min_tx_rate_mbps, over.min_tx_rate_mbps);
    take(base.max_tx_rate_mbps, over.max_tx_rate_mbps);
    take(base.node_guid, over.node_guid);
    take(base.port_guid, over.port_guid);
    return base;
}

bool empty(VfSpec const& spec) {
    return spec == VfSpec{};
}

void to_json(nlohmann::json& out, VfSpec const& spec) {
    JsonWriter writer(out);
    members(spec, [&](char const* key, auto const& member) { writer.maybe(key, member); });
}

void read(JsonReader& reader, VfSpec& spec) {
    read_reported(reader, spec);
    if (spec.mac && spec.mac->zero())
        reader.complain("mac", "must not be the zero address; leave it out for a chosen one");
    else if (spec.mac && spec.mac->multicast())
        reader.complain("mac", "must not be a multicast address: the first octet must be even");
    auto const min = spec.min_tx_rate_mbps.value_or(0);
    auto const max = spec.max_tx_rate_mbps.value_or(0);
    if (max != 0 && min > max)
        reader.complain("min_tx_rate_mbps",
                        fmt::format("must not exceed max_tx_rate_mbps, {}", max));
}

void reported_to_json(nlohmann::json& out, VfSpec const& spec) {
    JsonWriter writer(out);
    members(spec, [&](char const* key, auto const& member) { writer.nullable(key, member); });
}

void read_reported(JsonReader& reader, VfSpec& spec) {
    members(spec, [&](char const* key, auto& member) { reader.maybe(key, member); });
}

}  // namespace vfmgr
