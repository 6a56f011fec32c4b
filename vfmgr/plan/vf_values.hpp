// SPDX-License-Identifier: Apache-2.0
// Arithmetic on the members of a VfSpec. Pure.
#pragma once

#include "api/types/vf_spec.hpp"

namespace vfmgr {

// Stands for the zero MAC with drivers that refuse that one, as libvirt has it.
inline constexpr MacAddress stand_in_mac{{0x02, 0, 0, 0, 0, 0}};
// The driver reports the MAC that is wanted, or what stands for it; false when it reports none.
[[nodiscard]] bool mac_holds(VfSpec const& wanted, VfSpec const& reported);

// By its name, which is all there is of a driver that is wished for: "vfio-pci", "mlx5_vfio_pci".
[[nodiscard]] bool names_vfio_driver(std::string_view driver);

// The members of `values` that `mask` has: "what was there, of what will be set".
[[nodiscard]] VfSpec only_members_of(VfSpec const& mask, VfSpec values);
// The members of `want` whose value is not the one that `now` reports.
[[nodiscard]] VfSpec differing(VfSpec want, VfSpec const& now);
// None differs.
[[nodiscard]] bool holds(VfSpec const& want, VfSpec const& now);

}  // namespace vfmgr
