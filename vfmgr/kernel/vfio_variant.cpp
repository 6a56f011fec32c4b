// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/vfio_variant.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <fstream>
#include <system_error>

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

std::string read_vfio_aliases(std::filesystem::path const& modules_alias) {
    std::ifstream file(modules_alias);
    std::string lines;
    for (std::string line; std::getline(file, line);)
        if (vfio_alias_in(line)) lines += line + '\n';
    return lines;
}

}  // namespace

std::optional<std::string> best_vfio_module(std::string_view modules_alias,
                                            std::string_view modalias) {
    if (!modalias.starts_with("pci:")) return std::nullopt;
    auto const device = "vfio_" + std::string(modalias);
    std::optional<std::string> best;
    std::ptrdiff_t open_in_best = 0;  // number of "*" in its alias
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

std::optional<std::string> VfioAliases::module_of(LinuxKernelRoots const& roots,
                                                  std::string_view modalias) {
    auto const file = roots.modules / "modules.alias";
    std::error_code error;
    auto const written_at = std::filesystem::last_write_time(file, error);
    if (error) return std::nullopt;
    std::lock_guard const lock(mutex_);
    if (written_at_ != written_at) {
        lines_ = read_vfio_aliases(file);
        written_at_ = written_at;
    }
    return best_vfio_module(lines_, modalias);
}

std::optional<VfioVariant> VfioAliases::variant_of(LinuxKernelRoots const& roots,
                                                   PciAddress const& vf) {
    auto const modalias = read_text(pci_folder(roots, vf) / "modalias");
    if (!modalias) return std::nullopt;
    auto const module = module_of(roots, *modalias);
    if (!module || *module == "vfio_pci") return std::nullopt;
    VfioVariant variant{*module, {}};
    constexpr std::string_view bus = "pci:";
    for (auto const& name : entries(roots.sysfs / "module" / *module / "drivers"))
        if (name.starts_with(bus)) variant.driver = name.substr(bus.size());
    return variant;
}

}  // namespace vfmgr
