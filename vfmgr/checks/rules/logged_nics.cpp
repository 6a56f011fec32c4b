// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>

#include "api/types/text.hpp"
#include "vfmgr/checks/rules/log.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::string_view nic_drivers =
    " mlx5_core mlx4_core mlx4_en i40e iavf ice ixgbe ixgbevf igb igbvf e1000e fm10k bnxt_en bnx2x "
    "qede cxgb4 cxgb4vf sfc ena mana hns3 hclge nfp ionic enic be2net tg3 atlantic ";

std::optional<std::uint32_t> hex_in(std::string_view text, std::string_view before, char after) {
    auto const from = text.find(before);
    if (from == text.npos) return std::nullopt;
    text.remove_prefix(from + before.size());
    auto const digits = take_until(text, after);
    auto const number =
        digits ? parse_digits(*digits, {.base = 16, .digits_max = 6}) : std::nullopt;
    return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

// "[15b3:101b] type 00 class 0x020000", as drivers/pci/probe.c prints it, some with more behind.
void add_numbers(PciDevice& device, std::string_view text) {
    auto const vendor = hex_in(text, "[", ':');
    auto const number = hex_in(text, ":", ']');
    auto const class_code = hex_in(fmt::format("{} ", text), " class 0x", ' ');
    if (!vendor || !number || !class_code) return;
    device.vendor = static_cast<std::uint16_t>(*vendor);
    device.device = static_cast<std::uint16_t>(*number);
    device.class_code = *class_code;
}

}  // namespace

std::vector<PciDevice> logged_nics(KernelLog const& log) {
    std::map<PciAddress, PciDevice> all;
    for (auto const& line : log.lines) {
        auto const& of = line.by_device;
        auto const failed = of ? std::nullopt : parse_probe_failure(line.text);
        if (!of && !failed) continue;
        auto& device = all[of ? of->device : failed->device];
        device.address = of ? of->device : failed->device;
        auto const driver = of ? of->driver : failed->driver;
        if (of && driver == "pci" && of->text.starts_with('[')) add_numbers(device, of->text);
        if (contains(nic_drivers, fmt::format(" {} ", driver)))
            device.driver = std::optional(std::string(driver));
    }
    std::vector<PciDevice> nics;
    for (auto& [address, device] : all)
        if (device.driver.peek() || is_network(device)) nics.push_back(std::move(device));
    return nics;
}

}  // namespace vfmgr::checks
