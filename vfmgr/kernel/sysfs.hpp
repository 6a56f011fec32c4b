// SPDX-License-Identifier: Apache-2.0
// Reading PCI devices and VFs from sysfs, and writing single attributes. Free functions; any
// thread. Never reads sriov_numvfs or driver_override: both take the device's lock and hang while a
// resize hangs (kernel-and-libvirt.md, 1).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/pci_address.hpp"

namespace vfmgr {

[[nodiscard]] std::filesystem::path running_kernels_modules();  // "/lib/modules/6.1.0-41-amd64"

// Where the kernel's file systems are. Tests give trees of their own.
struct LinuxKernelRoots {
    std::filesystem::path sysfs = "/sys";
    std::filesystem::path proc = "/proc";
    std::filesystem::path dev = "/dev";
    std::filesystem::path udev = "/run/udev";
    std::filesystem::path modules = running_kernels_modules();
    std::filesystem::path programs = "/usr/bin";  // where a card's own tool is
};

// The file's text without the final newline.
[[nodiscard]] Result<std::string> read_text(std::filesystem::path const& file);
// Decimal, or hexadecimal after 0x; a sign is none.
[[nodiscard]] Result<std::uint64_t> read_number(std::filesystem::path const& file);
// One write() of the whole text. 0, or the errno of open() or write().
[[nodiscard]] int write_text(std::filesystem::path const& file, std::string_view text);
// The last part of where a link points; nothing when there is no link.
[[nodiscard]] std::optional<std::string> link_name(std::filesystem::path const& link);
// Names of the entries of a folder, sorted; none when there is no such folder.
[[nodiscard]] std::vector<std::string> entries(std::filesystem::path const& folder);

[[nodiscard]] std::filesystem::path pci_folder(LinuxKernelRoots const& roots,
                                               PciAddress const& pci);
// Devices with sriov_totalvfs, ascending.
[[nodiscard]] Result<std::vector<PciAddress>> list_pfs(LinuxKernelRoots const& roots);
// The errno of opening its folder is the cause.
[[nodiscard]] Error no_such_device(LinuxKernelRoots const& roots, PciAddress const& pf, int error);
// From the virtfnN links, the only truth: addresses change with the number of VFs.
using VfAddresses = std::map<std::uint16_t, PciAddress>;
[[nodiscard]] Result<VfAddresses> list_vfs(LinuxKernelRoots const& roots, PciAddress const& pf);
// not_found, naming how many there are.
[[nodiscard]] Result<PciAddress> vf_address(LinuxKernelRoots const& roots, VfId const& vf);
[[nodiscard]] Result<std::uint16_t> total_vfs(LinuxKernelRoots const& roots, PciAddress const& pf);

[[nodiscard]] std::optional<std::string> driver_of(LinuxKernelRoots const& roots,
                                                   PciAddress const& pci);
[[nodiscard]] std::optional<std::uint32_t> iommu_group_of(LinuxKernelRoots const& roots,
                                                          PciAddress const& pci);
[[nodiscard]] std::optional<std::int32_t> numa_node_of(LinuxKernelRoots const& roots,
                                                       PciAddress const& pci);
// Names of its network and RDMA devices.
[[nodiscard]] std::vector<std::string> netdevs_of(LinuxKernelRoots const& roots,
                                                  PciAddress const& pci);
[[nodiscard]] std::vector<std::string> rdma_devices_of(LinuxKernelRoots const& roots,
                                                       PciAddress const& pci);
// By the presence of vfio-dev/, not by the driver's name: there are variants (mlx5_vfio_pci).
[[nodiscard]] bool bound_to_vfio(LinuxKernelRoots const& roots, PciAddress const& pci);

}  // namespace vfmgr
