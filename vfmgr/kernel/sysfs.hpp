// SPDX-License-Identifier: Apache-2.0
// Reads PCI devices and VFs from sysfs, and writes single attributes. Free functions; any thread.
// Never reads sriov_numvfs or driver_override: both take the device's lock and hang while a resize
// hangs (KERNEL.md#locks).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/addresses.hpp"

namespace vfmgr {

[[nodiscard]] std::filesystem::path running_kernels_modules();  // "/lib/modules/6.1.0-41-amd64"

// Mount points of the kernel's file systems. Tests pass their own trees.
struct LinuxKernelRoots {
    std::filesystem::path sysfs = "/sys";
    std::filesystem::path proc = "/proc";
    std::filesystem::path dev = "/dev";
    std::filesystem::path udev = "/run/udev";
    std::filesystem::path modules = running_kernels_modules();
    std::filesystem::path programs = "/usr/bin";  // folder of the cards' own tools
    std::filesystem::path devices{};              // of PCI functions; empty: sysfs has links to all
};

// Returns the file's text without the final newline.
[[nodiscard]] Result<std::string> read_text(std::filesystem::path const& file);
// Parses decimal, or hexadecimal after 0x; rejects a sign.
[[nodiscard]] Result<std::uint64_t> read_number(std::filesystem::path const& file);
// Writes the whole text in one write(). Returns 0, or the errno of open() or write().
[[nodiscard]] int write_text(std::filesystem::path const& file, std::string_view text);
// Returns the last component of the link's target; nothing when there is no link.
[[nodiscard]] std::optional<std::string> link_name(std::filesystem::path const& link);
// Returns the names of a folder's entries, sorted; none when there is no such folder.
[[nodiscard]] std::vector<std::string> entries(std::filesystem::path const& folder);

[[nodiscard]] std::filesystem::path pci_folder(LinuxKernelRoots const& roots,
                                               PciAddress const& pci);
// The same roots with a shorter way to a PF's VFs. Their folders are beside the PF's own
// (pci_iov_add_virtfn(), drivers/pci/iov.c), which bus/pci/devices only links to, and the kernel
// needs more time for such a link than for all else that it does to read a file of a VF.
[[nodiscard]] LinuxKernelRoots roots_beside(LinuxKernelRoots const& roots, PciAddress const& pf);
// Lists devices with sriov_totalvfs, ascending.
[[nodiscard]] Result<std::vector<PciAddress>> list_pfs(LinuxKernelRoots const& roots);
// Asks for one device alone: a host with a thousand VFs has a thousand others.
[[nodiscard]] Result<bool> is_pf(LinuxKernelRoots const& roots, PciAddress const& pci);
// `error`, the errno of opening the PF's folder, is the cause.
[[nodiscard]] Error no_such_device(LinuxKernelRoots const& roots, PciAddress const& pf, int error);
// Read from the virtfnN links, the only reliable source: addresses change with the number of VFs.
using VfAddresses = std::map<std::uint16_t, PciAddress>;
[[nodiscard]] Result<VfAddresses> list_vfs(LinuxKernelRoots const& roots, PciAddress const& pf);
// not_found, with the number of VFs, when there is no such VF.
[[nodiscard]] Result<PciAddress> vf_address(LinuxKernelRoots const& roots, VfId const& vf);
[[nodiscard]] Result<std::uint16_t> total_vfs(LinuxKernelRoots const& roots, PciAddress const& pf);

[[nodiscard]] std::optional<std::string> driver_of(LinuxKernelRoots const& roots,
                                                   PciAddress const& pci);
[[nodiscard]] std::optional<std::uint32_t> iommu_group_of(LinuxKernelRoots const& roots,
                                                          PciAddress const& pci);
// "pci0000:3a": the root complex that the function is below; nullopt where the tree has none.
[[nodiscard]] std::optional<std::string> pcie_root_of(LinuxKernelRoots const& roots,
                                                      PciAddress const& pci);
[[nodiscard]] std::optional<std::int32_t> numa_node_of(LinuxKernelRoots const& roots,
                                                       PciAddress const& pci);
// Names of the function's network and RDMA devices.
[[nodiscard]] std::vector<std::string> netdevs_of(LinuxKernelRoots const& roots,
                                                  PciAddress const& pci);
[[nodiscard]] std::vector<std::string> rdma_devices_of(LinuxKernelRoots const& roots,
                                                       PciAddress const& pci);
// The process of a folder of /proc; nothing for its other entries.
[[nodiscard]] std::optional<std::int32_t> process_id(std::string_view name);
// Empty when the process has ended: its name may be gone with it.
[[nodiscard]] std::string process_name(LinuxKernelRoots const& roots, std::int32_t pid);
// Checks for vfio-dev/, not for the driver's name: there are variants (mlx5_vfio_pci).
[[nodiscard]] bool bound_to_vfio(LinuxKernelRoots const& roots, PciAddress const& pci);

}  // namespace vfmgr
