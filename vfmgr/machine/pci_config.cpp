// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/pci_config.hpp"

#include <fmt/format.h>
#include <linux/pci_regs.h>

#include <array>
#include <utility>

#include "api/types/text.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

// Reads little-endian numbers; bytes that were not read have no value.
class RawSpace {
  public:
    explicit RawSpace(std::string_view bytes) : bytes_(bytes) {}
    [[nodiscard]] std::optional<std::uint32_t> number(std::size_t at, std::size_t size) const {
        if (at > bytes_.size() || size > bytes_.size() - at) return std::nullopt;
        std::uint32_t value = 0;
        for (std::size_t i = size; i > 0; --i)
            value = value << 8U | static_cast<unsigned char>(bytes_[at + i - 1]);
        return value;
    }
    [[nodiscard]] std::uint16_t word(std::size_t at) const {
        return static_cast<std::uint16_t>(number(at, 2).value_or(0));
    }
    [[nodiscard]] bool has(std::size_t at, std::size_t size) const {
        return number(at, 1) && number(at + size - 1, 1);
    }
    [[nodiscard]] std::size_t size() const { return bytes_.size(); }

  private:
    std::string_view bytes_;
};

// Returns where the function has this capability. Each capability points to the next, and in a
// broken list perhaps back, so the search ends after as many as there is room for.
std::optional<std::size_t> capability(RawSpace const& space, std::uint32_t id) {
    constexpr int most = (PCI_CFG_SPACE_SIZE - PCI_STD_HEADER_SIZEOF) / 4;
    if ((space.word(PCI_STATUS) & PCI_STATUS_CAP_LIST) == 0) return std::nullopt;
    auto at = space.number(PCI_CAPABILITY_LIST, 1).value_or(0) & ~3U;
    for (int i = 0; i < most && at >= PCI_STD_HEADER_SIZEOF && space.has(at, 2); ++i) {
        if (space.number(at, 1) == id) return at;
        at = space.number(at + PCI_CAP_LIST_NEXT, 1).value_or(0) & ~3U;
    }
    return std::nullopt;
}

std::optional<std::size_t> extended_capability(RawSpace const& space, std::uint32_t id) {
    constexpr int most = (PCI_CFG_SPACE_EXP_SIZE - PCI_CFG_SPACE_SIZE) / 4;
    std::uint32_t at = PCI_CFG_SPACE_SIZE;
    for (int i = 0; i < most && at >= PCI_CFG_SPACE_SIZE; ++i) {
        auto const header = space.number(at, 4);
        if (!header || *header == 0 || *header == UINT32_MAX) break;
        if (PCI_EXT_CAP_ID(*header) == id) return at;
        at = PCI_EXT_CAP_NEXT(*header);
    }
    return std::nullopt;
}

PcieCapability read_pcie(RawSpace const& space, std::size_t at) {
    auto const flags = space.word(at + PCI_EXP_FLAGS);
    PcieCapability pcie;
    pcie.kind = static_cast<PcieKind>((flags & PCI_EXP_FLAGS_TYPE) >> 4U);
    // Version 1 has no second set of registers.
    if ((flags & PCI_EXP_FLAGS_VERS) < 2) return pcie;
    pcie.forwards_ari = (space.word(at + PCI_EXP_DEVCTL2) & PCI_EXP_DEVCTL2_ARI) != 0;
    return pcie;
}

}  // namespace

std::string describe_acs(std::uint16_t bits) {
    constexpr std::array<std::string_view, 7> names{"SrcValid",   "TransBlk",    "ReqRedir",
                                                    "CmpltRedir", "UpstreamFwd", "EgressCtrl",
                                                    "DirectTrans"};
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text +=
            fmt::format("{}{}{}", i == 0 ? "" : " ", names[i], (bits >> i & 1U) != 0 ? '+' : '-');
    return text;
}

std::optional<PciConfiguration> parse_pci_configuration(std::string_view bytes) {
    RawSpace const space(bytes);
    if (space.size() < PCI_STD_HEADER_SIZEOF) return std::nullopt;
    PciConfiguration configuration;
    auto const of_class = space.number(PCI_CLASS_REVISION, 4);
    auto const header_type = space.number(PCI_HEADER_TYPE, 1).value_or(0) & 0x7fU;
    // Vendor and device can't decide this: those of a healthy VF read as ones.
    configuration.answers = of_class != UINT32_MAX && header_type != 0x7f;
    if (!configuration.answers || space.size() < PCI_CFG_SPACE_SIZE) return configuration;
    if (auto const at = capability(space, PCI_CAP_ID_EXP); at && space.has(*at, PCI_EXP_FLAGS + 2))
        configuration.pcie = read_pcie(space, *at);
    // A function without PCI Express has no more than 256 bytes, for root too.
    configuration.shows_extended_capabilities =
        space.size() > PCI_CFG_SPACE_SIZE || !configuration.pcie;
    if (auto const at = extended_capability(space, PCI_EXT_CAP_ID_ACS);
        at && space.has(*at, PCI_ACS_CTRL + 2))
        configuration.acs = {space.word(*at + PCI_ACS_CAP), space.word(*at + PCI_ACS_CTRL)};
    if (auto const at = extended_capability(space, PCI_EXT_CAP_ID_ATS);
        at && space.has(*at, PCI_ATS_CTRL + 2))
        configuration.ats = (space.word(*at + PCI_ATS_CTRL) & PCI_ATS_CTRL_ENABLE) != 0;
    return configuration;
}

std::vector<PciRegion> parse_pci_resource(std::string_view text) {
    constexpr std::size_t regions_max = 32;
    std::vector<PciRegion> regions;
    while (!text.empty() && regions.size() < regions_max) {
        auto line = take_line(text);
        std::array<std::uint64_t, 3> values{};
        for (auto& value : values) {
            auto const word = take_part(line, ' ');
            auto const number = word.starts_with("0x")
                                    ? parse_digits(word.substr(2), {.base = 16, .digits_max = 16})
                                    : std::nullopt;
            if (!number) return regions;
            value = *number;
        }
        if (!line.empty()) return regions;
        regions.push_back({values[0], values[1], values[2]});
    }
    return regions;
}

bool number_list_has(std::string_view list, int number) {
    list = take_line(list);  // older kernels end the file with "\n\0" (recorded)
    while (!list.empty()) {
        auto part = take_part(list, ',');
        auto const first = take_part(part, '-');
        auto const from = parse_digits(first, {.max = INT32_MAX});
        auto const to = part.empty() ? from : parse_digits(part, {.max = INT32_MAX});
        if (from && to && std::cmp_less_equal(*from, number) && std::cmp_less_equal(number, *to))
            return true;
    }
    return false;
}

}  // namespace vfmgr::checks
