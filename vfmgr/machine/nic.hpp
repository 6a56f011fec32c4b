// SPDX-License-Identifier: Apache-2.0
// NICs among a machine's PCI functions, and the contents of their firmware and configuration space.
// Free functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "vfmgr/machine/facts.hpp"
#include "vfmgr/machine/firmware.hpp"
#include "vfmgr/machine/machine.hpp"
#include "vfmgr/machine/pci_config.hpp"

namespace vfmgr::checks {

[[nodiscard]] bool is_connectx(PciDevice const& device);
// Decides by the device number: a VM has nothing else to go by.
[[nodiscard]] bool is_vf(PciDevice const& device);
// Its driver attaches it to a VM: "vfio-pci", "mlx5_vfio_pci".
[[nodiscard]] bool on_vfio(PciDevice const& device);
// "/sys/bus/pci/devices/0000:3b:00.0/driver".
[[nodiscard]] std::string file_of(PciAddress const& function, std::string_view name);
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

// Reads what only netlink shows of network and RDMA devices: lossless priorities, flow control,
// VFs' VLANs, the netdev of an RDMA port. Sends only GET requests, with a time limit. Any thread.

// Requests "RTM_GETADDR", "DCB_CMD_IEEE_GET ens1f0" and "ETHTOOL_MSG_PAUSE_GET ens1f0" for each
// netdev of a PCI function, and "RTM_GETLINK ens1f0 VFs" for each PF that has VFs.
// `facts` already has the links of /sys/class/net/*/device.
void ask_about_netdevs(Facts& facts);
// Requests "RDMA_NLDEV_CMD_GET" and "RDMA_NLDEV_CMD_PORT_GET mlx5_0".
void ask_about_rdma_devices(Facts& facts);

}  // namespace vfmgr::checks
