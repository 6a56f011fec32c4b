// SPDX-License-Identifier: Apache-2.0
// What attachment needs: VFIO in the kernel, libvirt's daemon, its version.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/types/text.hpp"
#include "vfmgr/checks/host/rules.hpp"
#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::checks {
namespace {

// The kernel's module that maps a VM's memory; newer kernels use iommufd, and POWER uses another.
std::optional<Finding> judge_mapping(Machine const& machine) {
    auto const type1 = module_exists(machine, "vfio_iommu_type1");
    bool const x86 = machine.cpu() && machine.cpu()->vendor != CpuVendor::other;
    bool const other = kernel_option(machine, "CONFIG_IOMMUFD_VFIO_CONTAINER") == "y" ||
                       module_loaded(machine, "iommufd");
    if (!x86 || other || !type1 || *type1) return std::nullopt;
    if (auto hidden = unread_so_far(machine)) return hidden;
    return failed(
        "", "this kernel has no vfio_iommu_type1, so no VM's memory can be mapped",
        by_kernel_module(machine, "vfio_iommu_type1", "CONFIG_VFIO_IOMMU_TYPE1"),
        {absence_evidence("/lib/modules/" + machine.release() + "/…/vfio_iommu_type1.ko")});
}

// Neither vfmgrd nor its broker may load modules: the unit of the broker, which vfmgrd starts,
// does.
bool vfmgrd_runs(Machine const& machine) {
    auto const* const unit = find_unit(machine, "vfmgrd.service");
    return unit && unit->runs();
}

std::vector<Finding> judge_vfio(Machine const& machine) {
    if (auto const mapping = judge_mapping(machine)) return {*mapping};
    if (module_loaded(machine, "vfio_pci")) return {ok("", "vfio-pci is loaded")};
    if (kernel_option(machine, "CONFIG_VFIO_PCI") == "n")
        return {failed("", "this kernel was built without vfio-pci (CONFIG_VFIO_PCI)",
                       by_hand("boot a kernel that has CONFIG_VFIO_PCI", BlastRadius::reboot),
                       {evidence_of(machine, "/boot/config-" + machine.release())})};
    auto const exists = module_exists(machine, "vfio_pci");
    if (!exists) return {unknown("", exists.error())};
    if (*exists && vfmgrd_runs(machine))
        return {failed("", "vfmgrd runs, but vfio-pci is not loaded: no VF can be bound to it",
                       by_command("modprobe vfio-pci"),
                       {absence_evidence("/sys/module/vfio_pci")})};
    if (*exists)
        return {ok("", "vfio-pci is installed, and vfmgr-broker.service loads it when it starts")};
    auto remedy = by_kernel_module(machine, "vfio-pci", "CONFIG_VFIO_PCI");
    if (vfmgrd_runs(machine) && remedy.blast_radius == BlastRadius::none)
        remedy.commands.emplace_back("modprobe vfio-pci");
    return {failed("", fmt::format("kernel {} has no module vfio-pci", machine.release()),
                   std::move(remedy),
                   {absence_evidence("/lib/modules/" + machine.release() + "/…/vfio-pci.ko")})};
}

// --- the daemon ---

struct LibvirtUnits {
    Unit service, socket;
    std::string name;  // "libvirtd"
    [[nodiscard]] bool masked() const {
        return service.load == "masked" || socket.load == "masked";
    }
    [[nodiscard]] bool installed() const { return service.installed() || masked(); }
    [[nodiscard]] bool answers() const { return socket.runs() || service.runs(); }
    [[nodiscard]] bool at_boot() const {
        auto const starts = [](Unit const& unit) { return unit.file.starts_with("enabled"); };
        return starts(service) || starts(socket);
    }
};

LibvirtUnits units_of(Machine const& machine, std::string const& name) {
    auto const find = [&](std::string const& id) {
        auto const* const found = find_unit(machine, id);
        return found ? *found : Unit{"not-found", "inactive", ""};
    };
    return {find(name + ".service"), find(name + ".socket"), name};
}

std::vector<Evidence> evidence_of(LibvirtUnits const& units) {
    auto const state_of = [](Unit const& unit) {
        return fmt::format("LoadState={} ActiveState={} UnitFileState={}", unit.load, unit.active,
                           unit.file);
    };
    return {{units.name + ".service", state_of(units.service)},
            {units.name + ".socket", state_of(units.socket)}};
}

Remedy install_libvirt(Machine const& machine) {
    if (machine.facts.text("/etc/debian_version"))
        return by_command(machine.cpu() && machine.cpu()->vendor == CpuVendor::other
                              ? "apt-get install libvirt-daemon-system"
                              : "apt-get install libvirt-daemon-system qemu-system-x86");
    if (machine.facts.text("/etc/redhat-release"))
        return {{"dnf install libvirt qemu-kvm", "systemctl enable --now virtqemud.socket"},
                BlastRadius::none};
    return by_hand("install libvirt's daemon and QEMU with the distribution's package manager");
}

// Judges libvirtd, or virtqemud, the modular daemon for QEMU; with both, the one that answers.
std::vector<Finding> judge_unit(Machine const& machine) {
    if (!machine.units()) return {unknown("", machine.units().error())};
    auto const whole = units_of(machine, "libvirtd");
    auto const modular = units_of(machine, "virtqemud");
    bool const take_modular =
        (modular.answers() && !modular.masked()) || (!whole.installed() && modular.installed());
    auto const& units = take_modular ? modular : whole;
    if (!units.installed())
        return {failed("", "libvirt's daemon is not installed", install_libvirt(machine),
                       evidence_of(units))};
    if (units.masked())
        return {failed("", fmt::format("{} is masked, so it can't be started", units.name),
                       {{fmt::format("systemctl unmask {0}.service {0}.socket", units.name),
                         fmt::format("systemctl enable --now {}.socket", units.name)},
                        BlastRadius::none},
                       evidence_of(units))};
    if (units.service.active == "failed")
        return {failed(
            "", fmt::format("{}.service has failed", units.name),
            by_command(fmt::format("systemctl restart {}.service", units.name),
                       fmt::format("running VMs stay up; to find the reason: journalctl -u {}",
                                   units.name)),
            evidence_of(units))};
    auto const start = fmt::format("systemctl enable --now {}.socket", units.name);
    if (!units.answers())
        return {failed("", fmt::format("{} does not run, and nothing starts it", units.name),
                       by_command(start), evidence_of(units))};
    if (!units.at_boot())
        return {warning("", fmt::format("{} runs, but does not start at boot", units.name),
                        by_command(start), evidence_of(units))};
    // Debian's daemon exits after two idle minutes; its socket starts it again.
    return {ok("",
               units.service.active == "active" ? fmt::format("{} runs", units.name)
                                                : fmt::format("{} starts on demand", units.name),
               evidence_of(units))};
}

// --- its version ---

struct LibvirtVersion {
    unsigned major = 0, minor = 0, micro = 0;
    auto operator<=>(LibvirtVersion const&) const = default;
};

// "libvirt.so.0.9000.0" is 9.0.0.
std::optional<LibvirtVersion> parse_libvirt(std::string_view target) {
    constexpr std::string_view name = "libvirt.so.0.";
    if (auto const slash = target.rfind('/'); slash != target.npos) target.remove_prefix(slash + 1);
    if (!target.starts_with(name)) return std::nullopt;
    target.remove_prefix(name.size());
    auto const number = take_until(target, '.');
    auto const both = number ? parse_digits(*number, {.max = 999'999}) : std::nullopt;
    auto const micro = parse_digits(target, {.max = 999});
    if (!both || !micro) return std::nullopt;
    constexpr unsigned thousand = 1000;
    return LibvirtVersion{static_cast<unsigned>(*both) / thousand,
                          static_cast<unsigned>(*both) % thousand, static_cast<unsigned>(*micro)};
}

struct FoundLibrary {
    std::string path, target;
};
std::optional<FoundLibrary> libvirt_library(Machine const& machine) {
    for (auto const pattern : {"/usr/lib/*/libvirt.so.0", "/usr/lib64/libvirt.so.0"})
        for (auto const& [path, link] : machine.facts.links(pattern))
            return FoundLibrary{std::string(path), link->bytes};
    return std::nullopt;
}

// ConnectX-6 Dx and later, and BlueField from 2: what mlx5_vfio_pci is for.
bool has_variant(PciDevice const& device) {
    constexpr std::array<std::uint16_t, 7> devices{0x101d, 0x101f, 0x1021, 0x1023,
                                                   0x1025, 0xa2d6, 0xa2dc};
    return device.vendor() == vendor_mellanox && is_network(device) &&
           std::ranges::find(devices, device.device()) != devices.end();
}

std::vector<Finding> judge_version(Machine const& machine) {
    auto const found = libvirt_library(machine);
    if (!found) {
        auto const expected = machine.facts.target("/usr/lib64/libvirt.so.0");
        if (!expected && !expected.error().absent()) return {unknown("", expected.error())};
        return {not_applicable("libvirt is not installed")};
    }
    std::vector<Evidence> const evidence{{found->path, found->target}};
    auto const version = parse_libvirt(found->target);
    if (!version)
        return {
            unknown("", {fmt::format("{}, which points to {}", found->path, found->target), 0})};
    auto const name =
        fmt::format("libvirt {}.{}.{}", version->major, version->minor, version->micro);
    std::vector<Finding> findings;
    if (version->major == 12 && version->minor == 1)
        findings.push_back(warning(
            "", name + " crashes virtqemud when a VM gets an interface of a hostdev network",
            by_hand("update libvirt to 12.2.0; until then attach VFs only with vfmgr, which uses "
                    "no hostdev network"),
            evidence));
    // If it is loaded, it is meant to be used. Its file exists on any machine.
    bool const variant = machine.pci() && std::ranges::any_of(*machine.pci(), has_variant) &&
                         module_loaded(machine, "mlx5_vfio_pci");
    if (*version < LibvirtVersion{10, 0, 0} && variant)
        findings.push_back(
            warning("",
                    name + " does not support variants of vfio-pci: it refuses a VF that is bound "
                           "to mlx5_vfio_pci (\"must be manually detached\")",
                    by_hand("update libvirt to 10.0.0; until then vfmgr binds VFs to vfio-pci, "
                            "with which they can be attached but not migrated"),
                    evidence));
    if (*version < LibvirtVersion{8, 7, 0})
        findings.push_back(
            warning("",
                    name + " lets a VM lock memory as if it had one VFIO device, so hot-plugging a "
                           "second may fail (ENOMEM)",
                    by_hand("update libvirt to 8.7.0, or set memtune/hard_limit in the VM's XML"),
                    evidence));
    return or_else(std::move(findings), ok("", name, evidence));
}

constexpr std::array libvirt_group{
    Rule{"vfio.modules", "The kernel has VFIO", "Linux Documentation/driver-api/vfio.rst",
         judge_vfio, AppliesTo::host},
    Rule{"libvirt.unit", "libvirt's daemon can be reached",
         "libvirtd(8), virtqemud(8); systemctl(1)", judge_unit, AppliesTo::host},
    Rule{"libvirt.version", "This libvirt has no known problem with VFs",
         "libvirt's NEWS: 8.7.0, 10.0.0, 12.2.0", judge_version, AppliesTo::host},
};

}  // namespace

constinit std::span<Rule const> const libvirt_rules = libvirt_group;

}  // namespace vfmgr::checks
