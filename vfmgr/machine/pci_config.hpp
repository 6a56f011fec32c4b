// SPDX-License-Identifier: Apache-2.0
// Parses a PCI function's configuration space: 64 bytes for ordinary users, 256 or 4,096 for root.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vfmgr::checks {

// The kind of a PCI Express function: the numbers are those of its capability, which defines more.
enum class PcieKind : std::uint8_t {
    endpoint = 0,
    root_port = 4,
    upstream_port = 5,
    downstream_port = 6,
};

struct PcieCapability {
    PcieKind kind = PcieKind::endpoint;
    bool forwards_ari = false;  // of ports
    bool operator==(PcieCapability const&) const = default;
};

// Access Control Services: what a port lets devices below it do to each other.
inline constexpr std::uint16_t acs_source_validation = 1U << 0U, acs_request_redirect = 1U << 2U,
                               acs_completion_redirect = 1U << 3U,
                               acs_upstream_forwarding = 1U << 4U, acs_direct_translated = 1U << 6U;
struct AcsCapability {
    std::uint16_t able = 0, on = 0;
    bool operator==(AcsCapability const&) const = default;
};
// "SrcValid+ TransBlk- ReqRedir+ …", as lspci prints it.
[[nodiscard]] std::string describe_acs(std::uint16_t bits);

struct PciConfiguration {
    bool answers = true;                       // false: all bits are ones
    bool shows_extended_capabilities = false;  // enough was read for them
    std::optional<PcieCapability> pcie;
    std::optional<AcsCapability> acs;
    std::optional<bool> ats;  // present: whether it is on
};

// Returns nullopt for less than a header's 64 bytes.
[[nodiscard]] std::optional<PciConfiguration> parse_pci_configuration(std::string_view bytes);

// A PCI device's regions, as the kernel writes them to the file "resource". Values; any thread.

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
