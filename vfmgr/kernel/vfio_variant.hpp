// SPDX-License-Identifier: Apache-2.0
// Which VFIO driver is made for a device: the kernel's modules.alias lists them under "vfio_pci:",
// and nothing loads or binds them by itself (kernel-and-libvirt.md, 3). Any thread.
#pragma once

#include <filesystem>
#include <mutex>
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

// Reads modules.alias again only when depmod has written it anew: it has a megabyte, and every look
// at a PF asks.
class VfioAliases {
  public:
    // nullopt where vfio-pci is the best there is, or nothing can be read.
    [[nodiscard]] std::optional<VfioVariant> variant_of(LinuxKernelRoots const& roots,
                                                        PciAddress const& vf);

  private:
    [[nodiscard]] std::optional<std::string> module_of(LinuxKernelRoots const& roots,
                                                       std::string_view modalias);

    std::mutex mutex_;
    std::optional<std::filesystem::file_time_type> written_at_;
    std::string lines_;  // those of VFIO
};

}  // namespace vfmgr
