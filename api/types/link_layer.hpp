// SPDX-License-Identifier: Apache-2.0
// The link layer of a NIC's port.
#pragma once

#include "api/types/enum_names.hpp"

namespace vfmgr {

enum class LinkLayer { ethernet, infiniband };
template <>
inline constexpr std::array<EnumName<LinkLayer>, 2> enum_names<LinkLayer> = {
    {{LinkLayer::ethernet, "ethernet"}, {LinkLayer::infiniband, "infiniband"}}};

}  // namespace vfmgr
