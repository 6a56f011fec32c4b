// SPDX-License-Identifier: Apache-2.0
// VF attributes that are files of sysfs and not rtnetlink's: the number of MSI-X vectors; and, for
// an InfiniBand PF without IPoIB interface, GUIDs and policy in the files of NVIDIA's out-of-tree
// driver, <PF>/sriov/<index>/{node,port,policy}. Free functions; any thread.
#pragma once

#include "api/types/vf_spec.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

struct VfFile {
    std::filesystem::path path;
    std::string text;  // to write
};
// Where and how the wanted `attribute` is written; nothing when sysfs has no file for it.
[[nodiscard]] std::optional<VfFile> vf_file(LinuxKernelRoots const& roots, VfId const& vf,
                                            PciAddress const& pci, VfSpec const& wanted,
                                            VfAttribute attribute);

// What sysfs says of the VF. The MSI-X vectors are those of its configuration space: the file that
// sets them can't be read [src drivers/pci/iov.c].
[[nodiscard]] VfSpec read_vf_files(LinuxKernelRoots const& roots, VfId const& vf,
                                   PciAddress const& pci);

// From a function's configuration space; nothing without MSI-X, or when it was not read that far.
[[nodiscard]] std::optional<std::uint16_t> msix_vectors_in(std::string_view configuration);

}  // namespace vfmgr
