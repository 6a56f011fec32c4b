// SPDX-License-Identifier: Apache-2.0
// The VLAN tag that the NIC puts on a VF's frames. A value; field names follow iproute2.
#pragma once

#include <cstdint>

#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"

namespace vfmgr {

enum class VlanProtocol { dot1q, dot1ad };
template <>
inline constexpr std::array<EnumName<VlanProtocol>, 2> enum_names<VlanProtocol> = {
    {{VlanProtocol::dot1q, "802.1q"}, {VlanProtocol::dot1ad, "802.1ad"}}};

// id 0 means "set to no tag"; an absent Vlan means "leave alone".
struct Vlan {
    std::uint16_t id = 0;  // 0..4094
    std::uint8_t qos = 0;  // 0..7, the PCP
    VlanProtocol proto = VlanProtocol::dot1q;
    auto operator<=>(Vlan const&) const = default;
};

extern template struct Json<Vlan>;
void append_json(std::string& text, Vlan const& vlan);

}  // namespace vfmgr
