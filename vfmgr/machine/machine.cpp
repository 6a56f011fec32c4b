// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "api/types/text.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/read_devices.hpp"

namespace vfmgr::checks {
namespace {

template <class Parse>
auto parsed(Known<std::string_view> const& text, Parse parse)
    -> Known<decltype(parse(std::string_view()))> {
    if (!text) return tl::unexpected(text.error());
    return parse(*text);
}

using Modules = std::set<std::string, std::less<>>;

// /proc/modules has loaded modules; /sys/module also has built-in ones with a parameter.
Field<Known<Modules>> read_modules(Facts const& facts, Reads& reads) {
    auto const loaded = facts.text("/proc/modules");
    auto const present = facts.names("/sys/module");
    Known<Modules> known = Modules();
    if (present) known->insert(present->begin(), present->end());
    for (auto const line : lines_in(loaded.value_or("")))
        known->emplace(line.substr(0, line.find(' ')));
    auto const why = !loaded ? loaded.error() : !present ? present.error() : Unknown{"", ENOENT};
    if (!loaded && !present) known = tl::unexpected(why);
    return {std::move(known), why, reads};
}

Known<std::map<std::string, Unit, std::less<>>> read_units(Facts const& facts) {
    for (auto const& [line, fact] : facts.commands)
        if (line.starts_with("systemctl show ") && fact.error == 0) return parse_units(fact.out);
    return tl::unexpected(Unknown{"systemctl show", 0});
}

Known<std::vector<VfioHolding>> read_holders(Facts const& facts) {
    for (auto const& [path, fact] : facts.folders)
        if (fact.error != 0 && matches("/proc/[0-9]*/fd", path))
            return tl::unexpected(Unknown{path, fact.error});
    if (!facts.patterns.contains("/proc/[0-9]*/fd/*") && !facts.patterns.contains("*"))
        return tl::unexpected(Unknown{"/proc/*/fd", 0});
    std::vector<VfioHolding> all;
    for (auto const& [path, fact] : facts.links) {
        if (!matches("/proc/[0-9]*/fd/*", path)) continue;
        auto const process = path.substr(0, path.find("/fd/"));
        VfioHolding holding{
            fact.bytes, std::string(facts.text(process + "/comm").value_or("")), {}};
        auto const arguments = facts.text(process + "/cmdline").value_or("");
        constexpr std::string_view mark = "guest=";
        if (auto const at = arguments.find(mark); at != arguments.npos) {
            auto const name = arguments.substr(at + mark.size());
            holding.vm = name.substr(0, name.find_first_of(",\n"));
        }
        all.push_back(std::move(holding));
    }
    return all;
}

// Reads /dev/kmsg, or the journal where the process may not read that.
Known<KernelLog> read_log(Facts const& facts) {
    auto log = parsed(facts.text("/dev/kmsg"), parse_kernel_log);
    if (log) return log;
    for (auto const& [line, fact] : facts.commands)
        if (line.starts_with("journalctl ") && fact.exit_status == 0 && !fact.out.empty())
            return parse_kernel_log(fact.out);
    return log;
}

}  // namespace

std::vector<KernelParameter> parse_kernel_parameters(std::string_view cmdline) {
    std::vector<KernelParameter> all;
    for (auto const word : words_in(cmdline, " \n")) {
        if (word == "--") break;  // what follows is init's
        auto const equals = word.find('=');
        all.push_back({std::string(word.substr(0, equals)),
                       equals == word.npos ? "" : std::string(word.substr(equals + 1))});
    }
    return all;
}

// Parses the first processor's lines: the others are alike.
Cpu parse_cpu(std::string_view cpuinfo) {
    Cpu cpu;
    bool has_flags = false;
    for (auto value : lines_in(cpuinfo)) {
        auto const key = trimmed(take_until(value, ':').value_or(""));
        value = trimmed(value);
        if (key == "vendor_id") {
            cpu.architecture = value == "IBM/S390" ? Architecture::s390 : Architecture::x86;
            cpu.vendor = value == "GenuineIntel"   ? CpuVendor::intel
                         : value == "AuthenticAMD" ? CpuVendor::amd
                                                   : CpuVendor::other;
        }
        if (key == "CPU implementer") cpu.architecture = Architecture::arm;
        if (key == "cpu" && value.starts_with("POWER")) cpu.architecture = Architecture::power;
        // Only POWER names its machine here, after the last processor.
        if (key == "model") cpu.hypervisor |= contains(value, "emulated by qemu");
        if (key != "flags" || has_flags) continue;
        has_flags = true;
        for (auto const& flag : parse_kernel_parameters(value)) {
            cpu.vmx |= flag.name == "vmx";
            cpu.svm |= flag.name == "svm";
            cpu.hypervisor |= flag.name == "hypervisor";
        }
    }
    return cpu;
}

bool is_vm(Machine const& machine) {
    if (machine.kind == CheckedMachine::guest) return true;
    if (machine.cpu() && machine.cpu()->hypervisor) return true;
    // As systemd-detect-virt(1) does. Amazon's machines without a hypervisor say so in their name.
    constexpr auto names = std::to_array<std::string_view>(
        {"KVM", "OpenStack", "KubeVirt", "QEMU", "VMware", "VMW", "innotek GmbH", "VirtualBox",
         "Xen", "Bochs", "Parallels", "BHYVE", "Hyper-V", "Virtual Machine", "Standard PC"});
    auto const vendor = machine.facts.text("/sys/devices/virtual/dmi/id/sys_vendor").value_or("");
    auto const product =
        machine.facts.text("/sys/devices/virtual/dmi/id/product_name").value_or("");
    if (vendor == "Amazon EC2") return !contains(product, ".metal");
    return std::ranges::any_of(names, [&](auto const name) {
        return vendor.starts_with(name) || product.starts_with(name);
    });
}

std::map<std::string, Unit, std::less<>> parse_units(std::string_view shown) {
    std::map<std::string, Unit, std::less<>> units;
    std::string id;
    Unit unit;
    auto const keep = [&] {
        if (!id.empty()) units.insert_or_assign(std::move(id), std::move(unit));
        id.clear();
        unit = {};
    };
    for (auto value : lines_in(shown)) {
        if (value.empty()) keep();
        auto const key = take_until(value, '=');
        if (key == "Id") id = value;
        if (key == "LoadState") unit.load = value;
        if (key == "ActiveState") unit.active = value;
        if (key == "UnitFileState") unit.file = value;
    }
    keep();
    return units;
}

KernelParameter const* find_parameter(std::vector<KernelParameter> const& all,
                                      std::string_view name) {
    auto const found =
        std::find_if(all.rbegin(), all.rend(), [&](auto const& one) { return one.name == name; });
    return found == all.rend() ? nullptr : &*found;
}

PciDevice const* find_pci(Machine const& machine, PciAddress const& address) {
    if (!machine.pci()) return nullptr;
    auto const found = std::ranges::find(*machine.pci(), address, &PciDevice::address);
    return found == machine.pci()->end() ? nullptr : &*found;
}

bool share_slot(PciAddress const& one, PciAddress const& other) {
    return one.domain == other.domain && one.bus == other.bus && one.device == other.device;
}

bool module_loaded(Machine const& machine, std::string_view module) {
    return machine.modules() && machine.modules()->contains(module);
}

std::optional<std::string> kernel_option(Machine const& machine, std::string_view option) {
    auto const text = machine.facts.text("/boot/config-" + machine.release());
    if (!text) return std::nullopt;
    for (auto value : lines_in(*text)) {
        if (value == fmt::format("# {} is not set", option)) return "n";
        auto const key = take_until(value, '=');
        if (key == option) return std::string(value);
    }
    return "n";
}

Unit const* find_unit(Machine const& machine, std::string_view name) {
    if (!machine.units()) return nullptr;
    auto const found = machine.units()->find(name);
    return found == machine.units()->end() ? nullptr : &found->second;
}

LogLine const* find_line(KernelLog const& log, std::initializer_list<std::string_view> words) {
    for (auto const& line : log.lines)
        if (std::ranges::all_of(words, [&](auto const word) { return contains(line.text, word); }))
            return &line;
    return nullptr;
}

namespace {

template <class T>
Field<Known<T>> section(Known<T> known, Reads& reads) {
    if (known) return known;
    auto const why = known.error();
    return {std::move(known), why, reads};
}

}  // namespace

Machine read_machine(Facts const& facts) {
    auto owned = std::make_unique<Reads>();
    auto& reads = *owned;
    auto const release = facts.text("/proc/sys/kernel/osrelease");
    Field<std::string> const known_release =
        release ? Field(std::string(*release)) : Field(std::string(), release.error(), reads);
    return {std::move(owned),
            {facts, reads},
            facts.machine,
            known_release,
            section(parsed(facts.text("/proc/cmdline"), parse_kernel_parameters), reads),
            section(parsed(facts.text("/proc/cpuinfo"), parse_cpu), reads),
            read_modules(facts, reads),
            section(read_log(facts), reads),
            section(read_pci_devices(facts, reads), reads),
            section(read_netdevs(facts, reads), reads),
            section(read_rdma_devices(facts, reads), reads),
            section(read_units(facts), reads),
            section(read_holders(facts), reads)};
}

}  // namespace vfmgr::checks
