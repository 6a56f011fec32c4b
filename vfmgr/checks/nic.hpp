// SPDX-License-Identifier: Apache-2.0
// NICs among a machine's PCI functions, and what their firmware and configuration space say. Free
// functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "vfmgr/checks/firmware.hpp"
#include "vfmgr/checks/machine.hpp"
#include "vfmgr/checks/pci_config.hpp"

namespace vfmgr::checks {

[[nodiscard]] bool is_connectx(PciDevice const& device);
// By its device number: in a VM nothing else tells.
[[nodiscard]] bool is_vf(PciDevice const& device);
// The driver lends it to a VM: "vfio-pci", "mlx5_vfio_pci".
[[nodiscard]] bool on_vfio(PciDevice const& device);
// Network functions that have SR-IOV, and ConnectX that should.
[[nodiscard]] std::vector<PciDevice const*> sriov_nics(Machine const& machine);
// Of each ConnectX function 0: its firmware's configuration is that of the whole card.
[[nodiscard]] std::vector<PciDevice const*> connectx_cards(Machine const& machine);

// "ens1 (0000:3b:00.0)"; the address where it has no netdev.
[[nodiscard]] std::string name_of(Machine const& machine, PciDevice const& device);

// An answer that is no table of parameters is Unknown, too: see firmware_complaint().
[[nodiscard]] Known<FirmwareConfiguration> firmware_of(Machine const& machine,
                                                       PciAddress const& function);
// What the tool said in place of an answer; empty when it was not run.
[[nodiscard]] std::string firmware_complaint(Machine const& machine, PciAddress const& function);
// The tool that was run: cures take the same.
[[nodiscard]] std::string firmware_tool(Machine const& machine);

[[nodiscard]] Known<PciConfiguration> configuration_of(Machine const& machine,
                                                       PciAddress const& address);

}  // namespace vfmgr::checks
