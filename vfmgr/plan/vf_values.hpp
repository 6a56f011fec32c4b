// SPDX-License-Identifier: Apache-2.0
// Arithmetic on the members of a VfSpec. Pure.
#pragma once

#include "api/types/vf_spec.hpp"

namespace vfmgr {

// Replaces the zero MAC with drivers that refuse that one, as libvirt does.
inline constexpr MacAddress stand_in_mac{{0x02, 0, 0, 0, 0, 0}};
// True when the driver reports the desired MAC, or its stand-in; false when it reports none.
[[nodiscard]] bool mac_holds(VfSpec const& desired, VfSpec const& reported);

// Decides by name, which is all there is of a requested driver: "vfio-pci", "mlx5_vfio_pci".
[[nodiscard]] bool names_vfio_driver(std::string_view driver);

// Returns the members of `values` that `mask` has: the old values of what will be set.
[[nodiscard]] VfSpec only_members_of(VfSpec const& mask, VfSpec values);
// Returns the members of `desired` whose value is not the one that `now` reports.
[[nodiscard]] VfSpec differing(VfSpec desired, VfSpec const& now);
// None differs.
[[nodiscard]] bool holds(VfSpec const& desired, VfSpec const& now);

}  // namespace vfmgr
