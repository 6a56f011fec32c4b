// SPDX-License-Identifier: Apache-2.0
// Models how a PF's driver behaves in the fakes: where its VFs land, what they report when new,
// what it refuses, which the product's own table says: the tests of each driver repeat it in their
// own words. Values and pure functions; the drivers' rows are in driver_model.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfmgr/kernel/quirks.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

struct DriverModel {
    std::string name;                               // names the row
    std::string driver;                             // the PF's, in sysfs
    std::string vf_driver;                          // what BindVfs may name besides vfio-pci
    VfSpec new_vf;                                  // what a new VF reports; absent: never reported
    quirks::Where where = quirks::Where::anywhere;  // which rows of the table hold beside others
    unsigned left_out = 0;                          // bits of VfAttribute: not supported
    LinkLayer link_layer = LinkLayer::ethernet;
    std::uint16_t vf_offset = 128;  // routing ids from the PF to VF 0, then from VF to VF
    std::uint16_t vf_stride = 2;
    bool makes_vfs_only_when_up = false;  // otherwise the write succeeds and none appear
    bool keeps_guids = false;             // set GUIDs come back with VFs that are made anew
};

// vfmgr and libvirt write this where a driver refuses the zero MAC: it stands for no MAC.
inline constexpr MacAddress mac_for_none{{0x02, 0, 0, 0, 0, 0}};

[[nodiscard]] std::vector<DriverModel> const& driver_models();
// Returns the row with that name; aborts the test when there is none.
[[nodiscard]] DriverModel const& driver_model(std::string_view name);

// PF routing id + offset + index * stride (vfmgr/kernel/KERNEL.md#vf-addresses).
[[nodiscard]] PciAddress vf_address(DriverModel const& model, PciAddress const& pf,
                                    std::uint16_t index);

// Returns the driver's errno for `member` of the requested spec; nullopt: the driver accepts it.
[[nodiscard]] std::optional<int> refusal(DriverModel const& model, PfState const& pf,
                                         std::string_view member, VfSpec const& spec);

// True when the driver resets the VF as it changes `member`.
[[nodiscard]] bool resets_vf(DriverModel const& model, std::string_view member);

// Makes a PF with an untagged interface, up and with carrier, at most 7 VFs and none yet.
[[nodiscard]] PfState make_pf(DriverModel const& model, std::string_view pci, std::string ifname);
[[nodiscard]] PfState make_igb_pf(std::string_view pci, std::string ifname);

}  // namespace vfmgr
