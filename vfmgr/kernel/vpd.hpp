// SPDX-License-Identifier: Apache-2.0
// Vital product data: what a card's maker wrote on it (PCI Local Bus Specification 3.0, appendix
// I). Each byte of it takes the device a while, so it is read once for each device that comes. Safe
// to call from any thread.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// The serial number of the read-only part; nothing where there is none, or where the bytes end
// before it.
[[nodiscard]] std::optional<std::string> vpd_serial(std::string_view vpd);

class VpdBook {
  public:
    [[nodiscard]] std::optional<std::string> serial_of(LinuxKernelRoots const& roots,
                                                       PciAddress const& pci);

  private:
    struct Known {
        std::uint64_t file = 0;  // inode of its sysfs file: another device's is another
        std::optional<std::string> serial;
    };
    std::mutex mutex_;
    std::map<PciAddress, Known> known_;
};

}  // namespace vfmgr
