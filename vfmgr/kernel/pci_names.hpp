// SPDX-License-Identifier: Apache-2.0
// Human-readable names of PCI devices, from libpci's database. Facts come from sysfs, never from
// here. Any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "vfmgr/kernel/sysfs.hpp"

struct pci_access;

namespace vfmgr {

struct PciNames {
    std::string vendor;  // "Intel Corporation"; "8086" when the database has no name
    std::string device;
    bool operator==(PciNames const&) const = default;
};

class PciNameBook {
  public:
    PciNameBook();
    [[nodiscard]] Result<PciNames> look_up(LinuxKernelRoots const& roots, PciAddress const& pci);

  private:
    struct Closed {
        void operator()(pci_access* access) const noexcept;
    };
    std::mutex mutex_;  // libpci has one cache for each access
    std::unique_ptr<pci_access, Closed> access_;
    std::map<std::pair<std::uint64_t, std::uint64_t>, PciNames> known_;
};

}  // namespace vfmgr
