// SPDX-License-Identifier: Apache-2.0
// Finds the VFIO driver made for a device: the kernel's modules.alias lists such drivers under
// "vfio_pci:", and nothing loads or binds them by itself (KERNEL.md#vfio-variants). Any thread.
#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "api/types/pf.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// Returns the module whose alias best matches a device's "pci:v000015B3d0000101Esv…", the first
// of equals, as libvirt has chosen since 10.0; vfio_pci itself matches every device.
[[nodiscard]] std::optional<std::string> best_vfio_module(std::string_view modules_alias,
                                                          std::string_view modalias);

// Reads modules.alias again only when depmod has rewritten it: it is a megabyte long, and every
// observation of a PF needs it.
class VfioAliases {
  public:
    // nullopt where vfio-pci is the best match, or nothing can be read.
    [[nodiscard]] std::optional<VfioVariant> variant_of(LinuxKernelRoots const& roots,
                                                        PciAddress const& vf);

  private:
    [[nodiscard]] std::optional<std::string> module_of(LinuxKernelRoots const& roots,
                                                       std::string_view modalias);

    std::mutex mutex_;
    std::optional<std::filesystem::file_time_type> written_at_;
    std::string lines_;  // the VFIO lines
};

}  // namespace vfmgr
