// SPDX-License-Identifier: Apache-2.0
// A PCI device's regions, as the kernel writes them to the file "resource". Values; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace vfmgr::checks {

struct PciRegion {
    std::uint64_t start = 0, end = 0, flags = 0;
    [[nodiscard]] bool is_memory() const { return (flags & 0x200U) != 0; }         // IORESOURCE_MEM
    [[nodiscard]] bool is_prefetchable() const { return (flags & 0x2000U) != 0; }  // …_PREFETCH
    // Nothing reaches a region without an address.
    [[nodiscard]] bool is_assigned() const { return start != 0; }
    [[nodiscard]] std::uint64_t bytes() const { return end < start ? 0 : end - start + 1; }
};
// Parses line by line: BARs 0 to 5, the ROM, then VF BARs or a bridge's windows. Stops at a line
// that is none of these.
[[nodiscard]] std::vector<PciRegion> parse_pci_resource(std::string_view text);

// "0-3,8" has 2.
[[nodiscard]] bool number_list_has(std::string_view list, int number);

}  // namespace vfmgr::checks
