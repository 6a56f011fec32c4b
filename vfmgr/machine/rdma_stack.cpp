// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/rdma_stack.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/text.hpp"

namespace vfmgr::checks {
namespace {

// "updates/dkms/nvidia-peermem.ko.zst" is nvidia_peermem: names use either "-" or "_".
bool is_file_of(std::string_view path, std::string_view module) {
    auto name = path.substr(path.rfind('/') + 1);
    auto const ending = name.find(".ko");
    if (ending == name.npos) return false;
    name = name.substr(0, ending);
    auto const plain = [](char one) { return one == '-' ? '_' : one; };
    return std::ranges::equal(name, module, {}, plain, plain);
}

// "3.2.5", "1.0.0.0": OFED's own part of a version has dots, the kernel's "0" has none.
bool is_ofed_build(std::string_view text) {
    if (text.find('.') == text.npos) return false;
    auto const digit_or_dot = [](char one) { return one == '.' || (one >= '0' && one <= '9'); };
    return std::ranges::all_of(text, digit_or_dot) && text.front() != '.' && text.back() != '.';
}

std::optional<int> small_number(std::string_view text) {
    auto const number = parse_digits(text, {.digits_max = 3});
    return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::string version_file(std::string_view module) {
    return fmt::format("/sys/module/{}/version", module);
}

}  // namespace

std::optional<OfedVersion> parse_ofed_version(std::string_view text) {
    // Takes one word; old versions add "(OFED-3.1-1.0.3)" to it.
    text = text.substr(0, text.find_first_of(" \n"));
    if (text.ends_with(':')) text.remove_suffix(1);
    // Names before it end with "-": "MLNX_OFED_LINUX-", "OFED-internal-".
    auto const build = text.rfind('-');
    if (build == text.npos || build == 0 || !is_ofed_build(text.substr(build + 1)))
        return std::nullopt;
    auto const before = text.rfind('-', build - 1);
    auto const from = before == text.npos ? 0 : before + 1;
    auto release = text.substr(from, build - from);
    auto const major = take_until(release, '.');
    auto const major_number = major ? small_number(*major) : std::nullopt;
    auto const minor_number = small_number(release);
    if (!major_number || !minor_number) return std::nullopt;
    return OfedVersion{*major_number, *minor_number, std::string(text.substr(from))};
}

std::optional<bool> release_is_at_least(std::string_view release, int major, int minor) {
    auto const has_major = take_until(release, '.');
    auto const has_minor = release.substr(0, release.find_first_not_of("0123456789"));
    auto const first = has_major ? small_number(*has_major) : std::nullopt;
    auto const second = small_number(has_minor);
    if (!first || !second) return std::nullopt;
    return *first != major ? *first > major : *second >= minor;
}

std::optional<ModuleFile> find_module(std::string_view modules_dep, std::string_view module) {
    for (auto rest : lines_in(modules_dep)) {
        auto const path = take_until(rest, ':');
        if (path && is_file_of(*path, module)) return ModuleFile{*path, words_in(rest)};
    }
    return std::nullopt;
}

std::optional<std::uint32_t> find_symbol_version(std::string_view table, std::string_view symbol) {
    while (!table.empty()) {
        auto const words = words_in(take_line(table));
        if (words.size() < 2 || words[1] != symbol || !words[0].starts_with("0x")) continue;
        auto const version = parse_digits(words[0].substr(2), {.base = 16, .max = UINT32_MAX});
        if (version) return static_cast<std::uint32_t>(*version);
    }
    return std::nullopt;
}

std::optional<std::string_view> find_kernel_symbol(std::string_view kallsyms,
                                                   std::string_view symbol) {
    while (!kallsyms.empty()) {
        auto const words = words_in(take_line(kallsyms));
        if (words.size() < 3 || words[2] != symbol) continue;
        auto owner = words.size() > 3 ? words[3] : std::string_view("kernel");
        if (owner.starts_with('[') && owner.ends_with(']'))
            owner = owner.substr(1, owner.size() - 2);
        return owner;
    }
    return std::nullopt;
}

std::vector<PciDevice const*> own_connectx(Machine const& machine) {
    return functions_of(
        machine, [](PciDevice const& device) { return is_connectx(device) && !on_vfio(device); });
}

// pci.ids: 0x1002 to 0x1010 are ConnectX-2 and -3 with their VFs, 0x63… and 0x67… are older ones.
std::string_view driver_of_connectx(PciDevice const& device) {
    bool const mlx4 = (device.device() >= 0x1002 && device.device() <= 0x1010) ||
                      (device.device() >= 0x6340 && device.device() <= 0x676e);
    return mlx4 ? "mlx4_core" : "mlx5_core";
}

std::string_view rdma_driver_of_connectx(PciDevice const& device) {
    return driver_of_connectx(device) == "mlx4_core" ? "mlx4_ib" : "mlx5_ib";
}

bool module_present(Machine const& machine, std::string_view module) {
    if (module_loaded(machine, module)) return true;
    auto const path = "/lib/modules/" + machine.release() + "/modules.builtin";
    return std::ranges::any_of(lines_in(machine.facts.text(path).value_or("")),
                               [&](std::string_view file) { return is_file_of(file, module); });
}

Known<bool> module_exists(Machine const& machine, std::string_view module) {
    if (module_loaded(machine, module)) return true;
    auto const listed = machine.facts.text("/lib/modules/" + machine.release() + "/modules.dep");
    if (!listed) return tl::unexpected(listed.error());
    return module_present(machine, module) || find_module(*listed, module);
}

std::optional<std::string_view> module_file(Machine const& machine, std::string_view module) {
    auto const path = "/lib/modules/" + machine.release() + "/modules.dep";
    auto const found = find_module(machine.facts.text(path).value_or(""), module);
    return found ? std::optional(found->path) : std::nullopt;
}

bool is_debian(Machine const& machine) {
    return machine.facts.text("/etc/debian_version").has_value();
}

Ofed read_ofed(Machine const& machine) {
    Ofed ofed;
    if (auto const output = machine.facts.command("ofed_info -s");
        output && (*output)->exit_status == 0) {
        ofed.installed = parse_ofed_version((*output)->out);
        if (ofed.installed) ofed.evidence.push_back({"ofed_info -s", ofed.installed->text});
    }
    for (auto const module : {"mlx5_core", "mlx4_core"}) {
        auto const text = machine.facts.text(version_file(module));
        if (!text || ofed.running) continue;
        ofed.running = parse_ofed_version(*text);
        ofed.evidence.push_back({version_file(module), std::string(*text)});
    }
    return ofed;
}

}  // namespace vfmgr::checks
