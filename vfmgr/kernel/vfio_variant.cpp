// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/vfio_variant.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace vfmgr {
namespace {

struct Alias {
    std::string pattern;
    std::string_view module;
};

// "alias vfio_pci:v000015B3d0000101Esv*sd*bc*sc*i* mlx5_vfio_pci"
std::optional<Alias> vfio_alias_in(std::string_view line) {
    constexpr std::string_view keyword = "alias ";
    if (!line.starts_with("alias vfio_pci:")) return std::nullopt;
    line.remove_prefix(keyword.size());
    auto const space = line.find(' ');
    if (space == line.npos || space + 1 == line.size()) return std::nullopt;
    return Alias{std::string(line.substr(0, space)), line.substr(space + 1)};
}

std::optional<std::string> read_modules_alias(LinuxKernelRoots const& roots) {
    std::ifstream file(roots.modules / "modules.alias");
    if (!file) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

std::optional<std::string> best_vfio_module(std::string_view modules_alias,
                                            std::string_view modalias) {
    if (!modalias.starts_with("pci:")) return std::nullopt;
    auto const device = "vfio_" + std::string(modalias);
    std::optional<std::string> best;
    std::ptrdiff_t open_in_best = 0;  // "*": what its alias leaves open
    for (auto rest = modules_alias; !rest.empty();) {
        auto const line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        auto const alias = vfio_alias_in(line);
        if (!alias || ::fnmatch(alias->pattern.c_str(), device.c_str(), 0) != 0) continue;
        auto const open = std::ranges::count(alias->pattern, '*');
        if (best && open >= open_in_best) continue;
        best = alias->module;
        open_in_best = open;
    }
    return best;
}

std::optional<VfioVariant> vfio_variant_of(LinuxKernelRoots const& roots, PciAddress const& vf) {
    auto const modalias = read_text(pci_folder(roots, vf) / "modalias");
    auto const aliases = read_modules_alias(roots);
    if (!modalias || !aliases) return std::nullopt;
    auto const module = best_vfio_module(*aliases, *modalias);
    if (!module || *module == "vfio_pci") return std::nullopt;
    VfioVariant variant{*module, {}};
    constexpr std::string_view bus = "pci:";
    for (auto const& name : entries(roots.sysfs / "module" / *module / "drivers"))
        if (name.starts_with(bus)) variant.driver = name.substr(bus.size());
    return variant;
}

}  // namespace vfmgr
