// SPDX-License-Identifier: Apache-2.0
// Which VFIO driver is made for a device: the kernel's modules.alias lists them under "vfio_pci:",
// and nothing loads or binds them by itself (kernel-and-libvirt.md, 3). Free functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/types/pf_info.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// The module whose alias says the most of a device's "pci:v000015B3d0000101Esv…", the first of
// equals, as libvirt chooses since 10.0; vfio_pci itself stands for every device.
[[nodiscard]] std::optional<std::string> best_vfio_module(std::string_view modules_alias,
                                                          std::string_view modalias);

// nullopt where vfio-pci is the best there is, or nothing can be read.
[[nodiscard]] std::optional<VfioVariant> vfio_variant_of(LinuxKernelRoots const& roots,
                                                         PciAddress const& vf);

}  // namespace vfmgr
