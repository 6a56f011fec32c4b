// SPDX-License-Identifier: Apache-2.0
// Reads a NIC's switch (eswitch) through devlink, and the ports on it that represent VFs. Free
// functions that open a socket of their own; any thread. Facts:
// vfmgr/kernel/KERNEL.md#switch-and-devlink.
#pragma once

#include "api/types/firmware.hpp"
#include "api/types/pf.hpp"
#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

// "pci/0000:01:00.0", as devlink(8) writes it.
struct DevlinkDevice {
    std::string bus;
    std::string name;
};
[[nodiscard]] DevlinkDevice devlink_device(PciAddress const& pci);
[[nodiscard]] std::string to_string(DevlinkDevice const& device);

// The port of a VF; exists in switchdev mode.
struct VfPort {
    std::uint32_t index = 0;  // "pci/0000:01:00.0/65537"
    std::uint16_t vf = 0;
    std::optional<bool> roce;  // absent: the driver can't report it, or Linux before 6.2
    bool operator==(VfPort const&) const = default;
};

// Absent: no devlink, or a driver without such a switch.
[[nodiscard]] Result<std::optional<EswitchMode>> read_eswitch_mode(DevlinkDevice const& device,
                                                                   Deadline deadline);
// Lists the ports of this host's VFs: a DPU has those of others, too. None without devlink.
[[nodiscard]] Result<std::vector<VfPort>> list_vf_ports(DevlinkDevice const& device,
                                                        Deadline deadline);
// Sets whether the VF may use RoCE. Takes effect at the next probe of the VF's driver, the guest's.
[[nodiscard]] Result<NlAck> set_roce(DevlinkDevice const& device, VfPort const& port, bool on,
                                     Deadline deadline);

// Returns all answers to a DEVLINK_CMD_…_GET for all devices, each behind its genlmsghdr: older
// kernels can't be asked about one. None where there is no devlink.
[[nodiscard]] Result<std::vector<std::vector<std::byte>>> dump_devlink(std::uint8_t command,
                                                                       std::string const& call,
                                                                       Deadline deadline);

// --- parsing ---

// Parses the payload of DEVLINK_CMD_ESWITCH_GET's answer, behind its genlmsghdr.
[[nodiscard]] std::optional<EswitchMode> parse_eswitch_mode(ByteView attributes);
// Parses DEVLINK_CMD_PORT_GET's: nothing unless it is the port of a VF of `device` on this host.
[[nodiscard]] std::optional<VfPort> parse_vf_port(ByteView attributes, DevlinkDevice const& device);
// Parses CTRL_CMD_GETFAMILY's: the family's message type.
[[nodiscard]] std::optional<std::uint16_t> parse_family(ByteView attributes);

// Reads the parameters that a driver offers through devlink. Some are the card's own settings (mlx5
// has had enable_sriov and total_vfs since 2025). Read-only. Free functions that open a socket of
// their own; any thread. Facts: vfmgr/kernel/KERNEL.md#switch-and-devlink.

// Empty: no devlink, or a driver without parameters.
[[nodiscard]] Result<std::vector<DevlinkParameter>> list_parameters(DevlinkDevice const& device,
                                                                    Deadline deadline);

// Parses the payload of DEVLINK_CMD_PARAM_GET's answer, behind its genlmsghdr: one parameter, once
// for each mode that it has a value in. Empty unless it is of `device`.
[[nodiscard]] std::vector<DevlinkParameter> parse_parameter(ByteView attributes,
                                                            DevlinkDevice const& device);

}  // namespace vfmgr
