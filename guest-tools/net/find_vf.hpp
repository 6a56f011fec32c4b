// SPDX-License-Identifier: Apache-2.0
// Waits for udev, which renames a new netdev only while it is down. systemd-networkd in turn waits
// for udev, and never touches a netdev that was set up before. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "api/types/guest.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"
#include "vfmgr/netlink/link.hpp"

namespace vfmgr::guest {

// Waits until udev is done with this netdev; returns at once where no udev runs. `run` is /run.
// Fails at the deadline.
[[nodiscard]] Result<void> await_udev(std::filesystem::path const& run, int ifindex,
                                      Deadline deadline);

// Runs another program of the VM and waits for it, no longer than a deadline. `arguments` begins
// with the program, searched for in PATH. Fails when it can't be run, exits with another status
// than 0, or has to be killed at the deadline. Any thread.
[[nodiscard]] Result<void> run_program(std::vector<std::string> const& arguments,
                                       Deadline deadline);

// Loads kernel modules that RDMA needs, by modprobe. Any thread.

// Succeeds when the module is present, loaded or built in.
[[nodiscard]] Result<void> need_module(std::string const& sysfs, std::string const& module,
                                       Deadline deadline);

// Finds the netdev of a VF in this VM by its MAC, on InfiniBand by its port's GUID. Pure but for
// driverless_functions(); any thread.

// Returns the PCI function's own netdev: a failover pair, a bond and a VLAN device share its MAC,
// and IPoIB's interfaces for other partitions its GUID. Also accepts a device without a parent's
// name: kernels before 5.14 report all devices so.
[[nodiscard]] Netdev const* find_vf(std::vector<Netdev> const& netdevs,
                                    GuestAttachment const& attachment);

// "MAC 52:54:00:11:22:33", on InfiniBand "port GUID 02:02:c9:ff:fe:11:00:02".
[[nodiscard]] std::string identity_of(std::optional<MacAddress> const& mac,
                                      std::optional<Guid> const& guid);
// Why the VF can't be found.
[[nodiscard]] Error no_netdev(GuestAttachment const& attachment);

// Lists Ethernet and InfiniBand functions without a driver, as "0000:05:00.0 [8086:10ca]": the
// reason why there is no netdev.
[[nodiscard]] std::vector<std::string> driverless_functions(std::string const& sysfs);

// Whether the function has an RDMA part whose driver loads by itself, perhaps later:
// mlx5_core.rdma.0, bnxt_en.rdma.0, ice.roce.0 on the auxiliary bus.
[[nodiscard]] bool expects_rdma_device(std::string const& sysfs, std::string const& ifname);

}  // namespace vfmgr::guest
