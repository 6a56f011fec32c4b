// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/pci_names.hpp"

#include <fmt/format.h>

extern "C" {
#include <pci/pci.h>
}

#include <array>
#include <cstdlib>

namespace vfmgr {
namespace {

// Uses only the text database: libpci leaks its udev handle where udev has no hardware database.
constexpr int flags = PCI_LOOKUP_NO_NUMBERS | PCI_LOOKUP_NO_HWDB;

void ignore(char*, ...) {}

// libpci calls it when out of memory and expects it not to return; clang wants the attribute that
// libpci's own type has.
__attribute__((noreturn)) void give_up(char*, ...) {
    std::abort();
}

// The result of libpci points into the buffer or to a constant of libpci.
std::string lookup(pci_access* access, int what, std::uint64_t vendor, std::uint64_t device) {
    std::array<char, 256> buffer{};
    auto const* const name =
        pci_lookup_name(access, buffer.data(), static_cast<int>(buffer.size()), what,
                        static_cast<int>(vendor), static_cast<int>(device));
    return name == nullptr ? std::string() : std::string(name);
}

}  // namespace

void PciNameBook::Closed::operator()(pci_access* access) const noexcept {
    pci_cleanup(access);
}

// Skips pci_init(): names need no access to devices, and pci_init() exits the process on errors. It
// would have set these three callbacks, which lookups call.
PciNameBook::PciNameBook() : access_(pci_alloc()) {
    access_->error = give_up;
    access_->warning = ignore;
    access_->debug = ignore;
}

Result<PciNames> PciNameBook::look_up(LinuxKernelRoots const& roots, PciAddress const& pci) {
    auto const folder = pci_folder(roots, pci);
    VFMGR_TRY(auto const vendor, read_number(folder / "vendor"));
    VFMGR_TRY(auto const device, read_number(folder / "device"));
    std::lock_guard const lock(mutex_);
    auto const [known, added] = known_.try_emplace({vendor, device});
    if (added) {
        known->second.vendor = lookup(access_.get(), PCI_LOOKUP_VENDOR | flags, vendor, device);
        known->second.device = lookup(access_.get(), PCI_LOOKUP_DEVICE | flags, vendor, device);
        if (known->second.vendor.empty()) known->second.vendor = fmt::format("{:04x}", vendor);
        if (known->second.device.empty()) known->second.device = fmt::format("{:04x}", device);
    }
    return known->second;
}

}  // namespace vfmgr
