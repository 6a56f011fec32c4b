// SPDX-License-Identifier: Apache-2.0
// PCI functions: their names, vital product data, and values of the configuration space. Any
// thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/sysfs.hpp"

struct pci_access;

namespace vfmgr {

// Human-readable names of PCI devices, from libpci's database. Facts come from sysfs, never from
// here. Any thread.

struct PciNames {
    std::string vendor;  // "Intel Corporation"; "8086" when the database has no name
    std::string device;
    PciIds ids;
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

// Reads vital product data, which the card's maker wrote (PCI Local Bus Specification 3.0, appendix
// I). Devices read it slowly, byte by byte, so it is read once for each device that appears. Any
// thread.

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

// Reads the sysfs values that a step changes only while it runs, for steps that were interrupted;
// SetPciValues, steps.hpp, restores them. Free functions; the caller holds the PF's claim.

// Absent when the kernel has no such file, or can't read it.
[[nodiscard]] std::optional<bool> read_drivers_autoprobe(LinuxKernelRoots const& roots,
                                                         PciAddress const& pf);
// Returns "flr bus", for example; empty when the kernel can't reset the function.
[[nodiscard]] std::string read_reset_methods(LinuxKernelRoots const& roots, PciAddress const& pci);

// Sets the driver that the next probe binds. Empty: any driver that matches.
[[nodiscard]] Result<void> set_override(LinuxKernelRoots const& roots, PciAddress const& pci,
                                        std::string const& driver);

// --- parts ---

[[nodiscard]] Error refused_write(std::filesystem::path const& file, std::string const& detail,
                                  int error);

}  // namespace vfmgr
