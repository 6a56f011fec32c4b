// SPDX-License-Identifier: Apache-2.0
// Reads vital product data, which the card's maker wrote (PCI Local Bus Specification 3.0, appendix
// I). Devices read it slowly, byte by byte, so it is read once for each device that appears. Any
// thread.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// Returns the serial number of the read-only part, or nothing when it has none or is cut before it.
[[nodiscard]] std::optional<std::string> vpd_serial(std::string_view vpd);

class VpdBook {
  public:
    [[nodiscard]] std::optional<std::string> serial_of(LinuxKernelRoots const& roots,
                                                       PciAddress const& pci);

  private:
    struct Known {
        std::uint64_t file = 0;  // inode of its sysfs file, which no other device shares
        std::optional<std::string> serial;
    };
    std::mutex mutex_;
    std::map<PciAddress, Known> known_;
};

}  // namespace vfmgr
