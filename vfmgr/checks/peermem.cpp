// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/peermem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/text.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/driver_log.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::string_view peer_symbol = "ib_register_peer_memory_client";
constexpr std::string_view proc_version = "/proc/driver/nvidia/version";

// "580.65.06", "550.90.07": numbers separated by dots.
std::optional<int> branch_of(std::string_view word) {
    auto const dot = word.find('.');
    if (dot == word.npos || word.find_first_not_of("0123456789.") != word.npos) return std::nullopt;
    auto const branch = parse_digits(word.substr(0, dot), {.digits_max = 4});
    return branch ? std::optional(static_cast<int>(*branch)) : std::nullopt;
}

// "NAME=value" for any known value: "not set" is known, "not collected" is not.
std::string option_note(Machine const& machine, std::string_view option) {
    auto const value = kernel_option(machine, option);
    return value ? fmt::format("{}={}", option, *value) : std::string();
}

// Whether the loaded RDMA core offers peer memory; if it is not loaded, whether its file does.
std::optional<bool> peers_offered(Machine const& machine, std::vector<Evidence>& evidence) {
    auto const symbols = machine.facts.text("/proc/kallsyms");
    if (symbols && module_present(machine, "ib_core")) {
        auto const owner = find_kernel_symbol(*symbols, peer_symbol);
        evidence.push_back({"/proc/kallsyms", owner ? fmt::format("{} of {}", peer_symbol, *owner)
                                                    : fmt::format("no {}", peer_symbol)});
        return owner.has_value();
    }
    auto const path = fmt::format("/lib/modules/{}/modules.symbols", machine.release());
    auto const exported = machine.facts.text(path);
    if (!exported) return std::nullopt;
    bool const there = contains(*exported, fmt::format("symbol:{} ", peer_symbol));
    evidence.push_back({path, fmt::format("{}{}", there ? "" : "no ", peer_symbol)});
    return there;
}

// The symbol's version in the headers of the stack that the module was to be built for.
std::optional<std::uint32_t> version_offered(Machine const& machine, std::string& path) {
    auto const patterns = {
        std::string("/usr/src/ofa_kernel/default/Module.symvers"),
        fmt::format("/usr/src/ofa_kernel/{}/Module.symvers", machine.release()),
        fmt::format("/usr/src/ofa_kernel/*/{}/Module.symvers", machine.release())};
    for (auto const& pattern : patterns)
        for (auto const& [name, fact] : machine.facts.files(pattern)) {
            path = name;
            if (auto const version = find_symbol_version(fact->bytes, peer_symbol)) return version;
        }
    path = fmt::format("/lib/modules/{}/build/Module.symvers", machine.release());
    return find_symbol_version(machine.facts.text(path).value_or(""), peer_symbol);
}

// Returns the symbols that nvidia-peermem's file needs, by name and version.
CommandFact const* asked_for(Machine const& machine) {
    for (auto const& [line, fact] : machine.facts.unnoted().commands) {
        if (!line.starts_with("modprobe --dump-modversions ")) continue;
        auto const answer = machine.facts.command(line);
        if (answer && (*answer)->exit_status == 0) return *answer;
    }
    return nullptr;
}

PeermemBuild build_of(Machine const& machine, std::vector<Evidence>& evidence) {
    auto const path = fmt::format("/lib/modules/{}/modules.dep", machine.release());
    auto const listed = machine.facts.text(path);
    if (!listed) return PeermemBuild::unknown;
    auto const file = find_module(*listed, "nvidia_peermem");
    if (!file) {
        evidence.push_back({path, "no nvidia-peermem.ko"});
        return PeermemBuild::absent;
    }
    if (auto const* const asked = asked_for(machine)) {
        auto const expected = find_symbol_version(asked->out, peer_symbol);
        // A kernel without CONFIG_MODVERSIONS has no versions to show.
        if (!expected && !asked->out.empty()) {
            evidence.push_back(
                {std::string(file->path), fmt::format("does not use {}", peer_symbol)});
            return PeermemBuild::without_peers;
        }
        std::string symvers;
        auto const offered = version_offered(machine, symvers);
        if (expected && offered) {
            evidence.push_back({symvers, fmt::format("{} {:#010x}", peer_symbol, *offered)});
            evidence.push_back(
                {std::string(file->path), fmt::format("expects {:#010x}", *expected)});
            if (expected == offered) return PeermemBuild::fits;
            // The headers that it was built with may be those that could not be read.
            return machine.reads->first() ? PeermemBuild::unknown : PeermemBuild::other_stack;
        }
    }
    // depmod lists the exporters of what a module uses: without ib_core it uses no peer memory.
    auto const in_core = [](auto const one) { return contains(one, "/ib_core.ko"); };
    if (machine.reads->first()) return PeermemBuild::unknown;
    if (std::ranges::none_of(file->needs, in_core)) {
        evidence.push_back(
            {path, fmt::format("{} needs {}", file->path, fmt::join(file->needs, " "))});
        return PeermemBuild::without_peers;
    }
    return PeermemBuild::fits;
}

LogLine const* refusal_of_peermem(Machine const& machine) {
    return last_line(machine, [](LogLine const& line) {
        auto const symbol = parse_symbol_line(line.text);
        bool const ours =
            symbol && (symbol->module == "nvidia_peermem" || symbol->module == "nvidia-peermem");
        return ours && symbol->other_version;
    });
}

}  // namespace

std::vector<PciDevice const*> own_gpus(Machine const& machine) {
    return functions_of(
        machine, [](PciDevice const& device) { return is_nvidia_gpu(device) && !on_vfio(device); });
}

bool surely_offers_gpudirect(Machine const& machine) {
    constexpr std::uint32_t without_display = 0x0302;  // "3D controller"
    return std::ranges::any_of(own_gpus(machine), [](auto const* gpu) {
        return gpu->class_code() >> 8U == without_display;
    });
}

bool has_rdma_nic(Machine const& machine) {
    if (!own_connectx(machine).empty()) return true;
    return machine.pci() && std::ranges::any_of(*machine.pci(), [](auto const& device) {
               return is_network(device) && !device.rdma_devices().empty();
           });
}

std::optional<NvidiaDriver> parse_nvidia_driver(std::string_view text) {
    text = text.substr(0, text.find('\n'));
    if (!text.starts_with("NVRM version:")) return std::nullopt;
    NvidiaDriver driver;
    driver.open = contains(text, " Open Kernel Module ");
    for (auto const word : words_in(text)) {
        auto const branch = branch_of(word);
        if (!branch) continue;
        driver.version = word;
        driver.branch = *branch;
        return driver;
    }
    return std::nullopt;
}

std::optional<NvidiaDriver> nvidia_driver(Machine const& machine) {
    return parse_nvidia_driver(machine.facts.text(proc_version).value_or(""));
}

DmaBuf judge_dma_buf(Machine const& machine) {
    constexpr int kernel_major = 5, kernel_minor = 12, branch_min = 515;
    auto const driver = nvidia_driver(machine);
    auto const version = machine.facts.text(proc_version);
    if (!version && !version.error().absent()) return {Can::unknown, to_string(version.error())};
    if (!driver) return {Can::unknown, "NVIDIA's driver is not loaded"};
    if (!driver->open)
        return {Can::no, fmt::format("NVIDIA's kernel modules {} are the proprietary ones",
                                     driver->version)};
    if (driver->branch < branch_min)
        return {Can::no, fmt::format("NVIDIA's driver {} is older than 515", driver->version)};
    auto const release = release_is_at_least(machine.release(), kernel_major, kernel_minor);
    if (!release) return {Can::unknown, "the kernel's release can't be parsed"};
    // RHEL 8 has newer RDMA drivers in an old kernel.
    if (!*release && contains(machine.release(), ".el8"))
        return {Can::unknown, "this kernel may have it backported: only a test shows it"};
    if (!*release) return {Can::no, fmt::format("kernel {} is older than 5.12", machine.release())};
    auto const note = option_note(machine, "CONFIG_PCI_P2PDMA");
    return {Can::yes,
            fmt::format("kernel {} and NVIDIA's open kernel modules {}{}", machine.release(),
                        driver->version, note.empty() ? "" : ", " + note)};
}

Peermem examine_peermem(Machine const& machine) {
    Peermem peermem;
    peermem.loaded = module_loaded(machine, "nvidia_peermem");
    peermem.offered = peers_offered(machine, peermem.evidence);
    peermem.build = build_of(machine, peermem.evidence);
    if (peermem.loaded) {
        // The module registered when it was loaded, whatever happened to its file since.
        peermem.build = PeermemBuild::fits;
        return peermem;
    }
    bool const compared = std::ranges::any_of(
        peermem.evidence, [](auto const& one) { return one.text.starts_with("expects "); });
    auto const* const line = refusal_of_peermem(machine);
    if (line && !compared && peermem.build == PeermemBuild::fits) {
        peermem.build = PeermemBuild::other_stack;
        peermem.evidence.push_back(evidence_of(*line));
    }
    return peermem;
}

bool is_built_at_boot(Machine const& machine) {
    return machine.facts.text("/usr/sbin/akmods").has_value();
}

Remedy rebuild_nvidia(Machine const& machine) {
    auto const driver = nvidia_driver(machine);
    std::string package;
    // Unnoted, because only a remedy uses it, which says so where it finds no package.
    auto const& facts = machine.facts.unnoted();
    for (auto const& [path, fact] : facts.files) {
        constexpr std::string_view folder = "/var/lib/dpkg/info/";
        // A removed package may leave its list, without the sources.
        if (!path.starts_with(folder) || !path.ends_with(".list") || fact.bytes.empty()) continue;
        auto const name = path.substr(folder.size(), path.rfind('.') - folder.size());
        bool const ours = driver && contains(name, std::to_string(driver->branch));
        if (package.empty() || ours) package = name.substr(0, name.find(':'));
    }
    if (!package.empty()) return by_command(fmt::format("dpkg-reconfigure {}", package));
    for (auto const& [path, folder] : facts.folders) {
        if (!matches("/var/lib/dkms/nvidia*/*", path) || folder.error != 0) continue;
        auto version = std::string_view(path).substr(std::string_view("/var/lib/dkms/").size());
        if (contains(version, "/kernel-") || version.starts_with("nvidia-fs")) continue;
        return {{fmt::format("dkms build --force {} -k {}", version, machine.release()),
                 fmt::format("dkms install --force {} -k {}", version, machine.release())},
                BlastRadius::none};
    }
    if (is_built_at_boot(machine))
        return by_command(fmt::format("akmods --force --rebuild --kernels {}", machine.release()));
    return by_hand(
        "reinstall NVIDIA's driver from a package that builds its modules here (DKMS, .run): "
        "prebuilt modules are not built against the OFED of this machine");
}

}  // namespace vfmgr::checks
