// SPDX-License-Identifier: Apache-2.0
// What is wanted of a VF. An absent member means "leave alone". A value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/guid.hpp"
#include "api/types/mac_address.hpp"
#include "api/types/vlan.hpp"

namespace vfmgr {

// `auto` is a keyword: the enumerator is auto_, its text "auto". The PF's link decides.
enum class LinkState { auto_, enable, disable };
template <>
inline constexpr std::array<EnumName<LinkState>, 3> enum_names<LinkState> = {
    {{LinkState::auto_, "auto"}, {LinkState::enable, "enable"}, {LinkState::disable, "disable"}}};

struct VfSpec {
    std::optional<MacAddress> mac;
    std::optional<Vlan> vlan;
    std::optional<bool> spoofchk;
    std::optional<bool> trust;
    std::optional<LinkState> link_state;
    std::optional<std::uint32_t> min_tx_rate_mbps;  // 0: no guarantee
    std::optional<std::uint32_t> max_tx_rate_mbps;  // 0: no limit
    std::optional<Guid> node_guid;
    std::optional<Guid> port_guid;
    bool operator==(VfSpec const&) const = default;
};

// The wish with every member that `over` has taken from there.
[[nodiscard]] VfSpec overlay(VfSpec base, VfSpec const& over);
[[nodiscard]] bool empty(VfSpec const& spec);

void to_json(nlohmann::json& out, VfSpec const& spec);
void read(JsonReader& reader, VfSpec& spec);  // refuses multicast and zero MACs, rates min > max

// The same members as a fact: null where nothing is reported, and no rules, because a driver may
// well report the zero MAC. Reads what to_json() writes, too.
void reported_to_json(nlohmann::json& out, VfSpec const& spec);
void read_reported(JsonReader& reader, VfSpec& spec);

// The names of the members, as `best_effort` lists them.
inline constexpr std::array<std::string_view, 9> vf_spec_members = {"mac",
                                                                    "vlan",
                                                                    "spoofchk",
                                                                    "trust",
                                                                    "link_state",
                                                                    "min_tx_rate_mbps",
                                                                    "max_tx_rate_mbps",
                                                                    "node_guid",
                                                                    "port_guid"};

}  // namespace vfmgr
