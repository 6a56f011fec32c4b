// SPDX-License-Identifier: Apache-2.0
// NICs among a machine's PCI functions, and the contents of their firmware and configuration space.
// Free functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "vfmgr/checks/firmware.hpp"
#include "vfmgr/checks/machine.hpp"
#include "vfmgr/checks/pci_config.hpp"

namespace vfmgr::checks {

[[nodiscard]] bool is_connectx(PciDevice const& device);
// Decides by the device number: a VM has nothing else to go by.
[[nodiscard]] bool is_vf(PciDevice const& device);
// Its driver attaches it to a VM: "vfio-pci", "mlx5_vfio_pci".
[[nodiscard]] bool on_vfio(PciDevice const& device);
// Returns network functions that have SR-IOV, and ConnectX that should.
[[nodiscard]] std::vector<PciDevice const*> sriov_nics(Machine const& machine);
// Returns function 0 of each ConnectX: its firmware's configuration is that of the whole card.
[[nodiscard]] std::vector<PciDevice const*> connectx_cards(Machine const& machine);

// "ens1 (0000:3b:00.0)"; the address where it has no netdev.
[[nodiscard]] std::string name_of(Machine const& machine, PciDevice const& device);

// A reply that is no table of parameters is Unknown, too: see firmware_complaint().
[[nodiscard]] Known<FirmwareConfiguration> firmware_of(Machine const& machine,
                                                       PciAddress const& function);
// Returns the tool's output if it is no table; empty if the tool was not run.
[[nodiscard]] std::string firmware_complaint(Machine const& machine, PciAddress const& function);
// Returns the tool that was run: remedies use the same.
[[nodiscard]] std::string firmware_tool(Machine const& machine);

[[nodiscard]] Known<PciConfiguration> configuration_of(Machine const& machine,
                                                       PciAddress const& address);

}  // namespace vfmgr::checks
