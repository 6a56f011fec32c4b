// SPDX-License-Identifier: Apache-2.0
// How a PF's driver answers in the fakes: where its VFs land, what they report when new, what it
// refuses. Values and pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

struct DriverModel {
    std::uint16_t vf_offset = 128;  // routing ids from the PF to VF 0, then from VF to VF
    std::uint16_t vf_stride = 2;
    std::string vf_driver = "igbvf";           // what BindVf may name besides vfio-pci
    VfSpec new_vf;                             // what a new VF reports; absent: never reported
    std::map<std::string, int> refused;        // member of VfSpec -> errno
    bool refuses_8021ad = false;               // EPROTONOSUPPORT
    bool refuses_min_rate_above_zero = false;  // EINVAL
    bool needs_carrier_for_max_rate = false;   // EINVAL

    // QEMU's igb NIC with Linux's igb driver, as the lab has it (kernel-and-libvirt.md, last part).
    [[nodiscard]] static DriverModel igb();
    // Takes everything, and reports it, GUIDs too.
    [[nodiscard]] static DriverModel obliging();
};

// PF routing id + offset + index * stride (kernel-and-libvirt.md, 1).
[[nodiscard]] PciAddress vf_address(DriverModel const& model, PciAddress const& pf,
                                    std::uint16_t index);

// The errno that the driver answers to `member` of the wish; nullopt: it takes it.
[[nodiscard]] std::optional<int> refusal(DriverModel const& model, PfState const& pf,
                                         std::string_view member, VfSpec const& wish);

// A PF with an untagged leg, up and with carrier, 7 VFs at most, none made.
[[nodiscard]] PfState make_igb_pf(std::string_view pci, std::string ifname);

}  // namespace vfmgr
