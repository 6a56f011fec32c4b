// SPDX-License-Identifier: Apache-2.0
// A PCI function, 0000:3b:00.2, as the kernel names it in /sys/bus/pci/devices. A value.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/types/json_fwd.hpp"
#include "api/types/problem.hpp"

namespace vfmgr {

struct PciAddress {
    std::uint32_t domain = 0;  // 16 bits on most machines, 32 behind VMD
    std::uint8_t bus = 0;
    std::uint8_t device = 0;  // 0..31; always 0 with ARI
    std::uint8_t function = 0;

    // Accepts "0000:3b:00.2"; the domain may be omitted.
    [[nodiscard]] static Result<PciAddress> parse(std::string_view text);
    auto operator<=>(PciAddress const&) const = default;
};

[[nodiscard]] std::string to_string(PciAddress const& address);

// One VF: its PF and its number under it (sysfs virtfnN). The VF's own PCI address may change with
// the number of VFs, so it never identifies the VF (vfmgr/kernel/KERNEL.md#vf-addresses).
struct VfId {
    PciAddress pf;
    std::uint16_t index = 0;
    auto operator<=>(VfId const&) const = default;
};

[[nodiscard]] std::string to_string(VfId const& vf);  // "0000:3b:00.0/2"

extern template struct Json<VfId>;  // {"pf": "0000:3b:00.0", "index": 2}

}  // namespace vfmgr
