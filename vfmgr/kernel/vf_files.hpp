// SPDX-License-Identifier: Apache-2.0
// VF attributes that are set through sysfs files, not rtnetlink: the number of MSI-X vectors; and,
// for an InfiniBand PF without an IPoIB interface, GUIDs and policy in the files of NVIDIA's
// out-of-tree driver, <PF>/sriov/<index>/{node,port,policy}. Free functions; any thread.
#pragma once

#include "api/types/vf.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

struct VfFile {
    std::filesystem::path path;
    std::string text;  // to write
};
// Returns the file and the text for the desired `attribute`; nothing when sysfs has no such file.
[[nodiscard]] std::optional<VfFile> vf_file(LinuxKernelRoots const& roots, VfId const& vf,
                                            PciAddress const& pci, VfSpec const& desired,
                                            VfAttribute attribute);

// Reads the VF's attributes from sysfs. The MSI-X vectors come from its configuration space: the
// file that sets them can't be read [src drivers/pci/iov.c].
[[nodiscard]] VfSpec read_vf_files(LinuxKernelRoots const& roots, VfId const& vf,
                                   PciAddress const& pci);

// Parses a function's configuration space; nothing without MSI-X, or when the read was too short.
[[nodiscard]] std::optional<std::uint16_t> msix_vectors_in(std::string_view configuration);

}  // namespace vfmgr
