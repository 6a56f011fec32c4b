// SPDX-License-Identifier: Apache-2.0
// CPU virtualisation, the IOMMU and its groups: without them no VF can be attached.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "vfmgr/checks/host/rules.hpp"
#include "vfmgr/machine/nic.hpp"

namespace vfmgr::checks {
namespace {

bool has_table(Machine const& machine, std::string_view table) {
    auto const tables = machine.facts.names("/sys/firmware/acpi/tables");
    return tables && std::ranges::find(*tables, table) != tables->end();
}

constexpr std::string_view nested =
    "this machine is a VM itself: enable nested virtualisation for it on its host";

Remedy load_kvm(Machine const& machine, std::string const& module) {
    if (!module_loaded(machine, module)) return by_command("modprobe " + module);
    return by_hand(
        "see the kernel's log for the reason: journalctl -k --grep kvm; the firmware's "
        "set-up may have switched virtualisation off");
}

// What gives KVM to a machine that is not x86.
Remedy without_kvm(Machine const& machine) {
    if (is_vm(machine)) return by_hand(std::string(nested), BlastRadius::reboot);
    switch (machine.cpu()->architecture) {
        case Architecture::arm:
            // Built into most kernels, and works only where the kernel starts at EL2.
            return by_hand(
                "start the kernel at EL2: another hypervisor, or the firmware, has taken that "
                "level (journalctl -k --grep 'HYP mode'); or boot a kernel with CONFIG_KVM",
                BlastRadius::reboot);
        case Architecture::power:
            return load_kvm(machine, "kvm_hv");
        case Architecture::x86:
        case Architecture::s390:
        case Architecture::other:
            break;
    }
    return load_kvm(machine, "kvm");
}

std::vector<Finding> judge_virtualisation(Machine const& machine) {
    if (!machine.cpu()) return {unknown("", machine.cpu().error())};
    auto const devices = machine.facts.names("/dev");
    bool const node = devices && std::ranges::find(*devices, "kvm") != devices->end();
    if (node) return {ok("", "KVM is available", {{"/dev/kvm", "exists"}})};
    if (!devices) return {unknown("", devices.error())};
    auto const& cpu = *machine.cpu();
    std::vector<Evidence> const no_node{absence_evidence("/dev/kvm")};
    if (cpu.architecture != Architecture::x86)
        return {failed("", "there is no /dev/kvm", without_kvm(machine), no_node)};
    if (!cpu.vmx && !cpu.svm)
        return {failed("", "the CPU shows no virtualisation extension (vmx or svm)",
                       by_hand(is_vm(machine) ? std::string(nested)
                                              : "enable VT-x or SVM in the firmware's set-up",
                               BlastRadius::reboot),
                       {{"/proc/cpuinfo", "flags without vmx and svm"}})};
    auto const module = cpu.svm ? "kvm_amd" : "kvm_intel";
    auto const state = module_loaded(machine, module) ? fmt::format("though {} is loaded", module)
                                                      : fmt::format("and {} is not loaded", module);
    return {failed("", "there is no /dev/kvm, " + state, load_kvm(machine, module), no_node)};
}

// Names the firmware, or the hypervisor, that has the switch.
std::string switch_of_iommu(Machine const& machine) {
    auto const& cpu = *machine.cpu();
    bool const arm = cpu.architecture == Architecture::arm;
    if (is_vm(machine))
        return fmt::format(
            "this machine is a VM itself: give it an IOMMU on its host (libvirt: {})",
            arm ? "<iommu model='smmuv3'/>"
                : "<iommu model='intel'><driver intremap='on'/></iommu>");
    if (arm) return "enable the IOMMU (SMMU) in the firmware's set-up";
    if (cpu.architecture != Architecture::x86)
        return "see the kernel's log for why it uses none: journalctl -k --grep iommu";
    return cpu.vendor == CpuVendor::amd
               ? "enable IOMMU (AMD-Vi) in the firmware's set-up"
               : "enable VT-d (Intel Virtualization for Directed I/O) in the firmware's set-up";
}

// Kernels differ: Debian 12 and 13 use Intel's IOMMU by default, except for integrated GPUs.
bool is_used_unasked(Machine const& machine) {
    return kernel_option(machine, "CONFIG_INTEL_IOMMU_DEFAULT_ON") == "y" ||
           kernel_option(machine, "CONFIG_INTEL_IOMMU_DEFAULT_ON_INTGPU_OFF") == "y";
}

// Judges the vendor's own switch: what the kernel accepts, and what this build needs.
std::vector<Finding> iommu_is_off(Machine const& machine) {
    if (!machine.cpu()) return {unknown("", machine.cpu().error())};
    auto const& parameters = *machine.parameters();
    // The table shows whose IOMMU it is; the CPU shows only what is missing. (Zhaoxin's have a
    // DMAR, and an emulated machine may have any pair of them.)
    bool const amd = has_table(machine, "IVRS") ||
                     (machine.cpu()->vendor == CpuVendor::amd && !has_table(machine, "DMAR"));
    std::string const table = amd ? "IVRS" : "DMAR";
    // AMD's is on unless it is switched off.
    std::string const expected = amd ? "iommu=pt" : "intel_iommu=on iommu=pt";
    auto const* const general = find_parameter(parameters, "iommu");
    auto const* const own = find_parameter(parameters, amd ? "amd_iommu" : "intel_iommu");
    std::vector<Evidence> evidence{{"/sys/kernel/iommu_groups", "is empty"},
                                   evidence_of(machine, "/proc/cmdline")};
    if (general && general->value == "off")
        return {failed("", "the IOMMU is switched off by iommu=off on the kernel's command line",
                       by_kernel_parameter_instead(machine, "iommu=off", expected), evidence)};
    if (own && own->value == "off")
        return {failed("", fmt::format("the IOMMU is switched off by {}=off", own->name),
                       by_kernel_parameter_instead(machine, own->name + "=off", expected),
                       evidence)};
    if (machine.cpu()->architecture != Architecture::x86)
        return {failed("", "the kernel uses no IOMMU",
                       by_hand(switch_of_iommu(machine), BlastRadius::reboot), evidence)};
    if (!has_table(machine, table)) {
        evidence.push_back(absence_evidence("/sys/firmware/acpi/tables/" + table));
        return {failed("", fmt::format("the firmware offers no IOMMU: it has no {} table", table),
                       by_hand(switch_of_iommu(machine), BlastRadius::reboot), evidence)};
    }
    evidence.push_back({"/sys/firmware/acpi/tables/" + table, "exists"});
    if (amd || (own && own->value.starts_with("on")) || is_used_unasked(machine))
        return {
            failed("", "the firmware has an IOMMU, but the kernel does not use it",
                   by_hand(fmt::format("find the reason in the kernel's log: dmesg | grep -e {}",
                                       amd ? "AMD-Vi" : "DMAR")),
                   evidence)};
    return {failed("",
                   "the kernel does not use the IOMMU: intel_iommu=on is not on its command line",
                   by_kernel_parameter(machine, expected), evidence)};
}

std::vector<Finding> judge_enabled(Machine const& machine) {
    auto const groups = machine.facts.names("/sys/kernel/iommu_groups");
    if (!groups) return {unknown("", groups.error())};
    auto const units = machine.facts.names("/sys/class/iommu");
    if (!groups->empty())
        return {ok("", fmt::format("the IOMMU is on, with {} groups", groups->size()),
                   {{"/sys/class/iommu",
                     units ? fmt::format("{}", fmt::join(*units, " ")) : std::string()}})};
    if (!machine.parameters()) return {unknown("", machine.parameters().error())};
    return iommu_is_off(machine);
}

std::vector<Finding> judge_remapping(Machine const& machine) {
    auto const groups = machine.facts.names("/sys/kernel/iommu_groups");
    if (!groups) return {unknown("", groups.error())};
    if (groups->empty()) return {not_applicable("the IOMMU is off")};
    // Other CPUs have no remapping of this kind: ARM's GIC translates messages itself.
    if (!machine.cpu()) return {unknown("", machine.cpu().error())};
    if (machine.cpu()->architecture != Architecture::x86)
        return {not_applicable("only x86 shows IR- in /proc/interrupts")};
    auto const remapped = machine.facts.text("/proc/interrupts");
    if (!remapped) return {unknown("", remapped.error())};
    if (!remapped->empty())
        return {ok("", "interrupts are remapped",
                   {{"/proc/interrupts", std::string(remapped->substr(0, remapped->find('\n')))}})};
    auto const unsafe =
        machine.facts.text("/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts");
    if (unsafe == "Y")
        return {warning("",
                        "interrupts are not remapped, and VFIO is set to work without remapping: a "
                        "VM can raise any interrupt of this host",
                        by_hand("enable interrupt remapping (x2APIC) in the firmware's set-up, and "
                                "remove allow_unsafe_interrupts",
                                BlastRadius::reboot),
                        {evidence_of(machine,
                                     "/sys/module/vfio_iommu_type1/parameters/"
                                     "allow_unsafe_interrupts")})};
    return {failed("", "interrupts are not remapped, so VFIO refuses devices (EPERM)",
                   by_hand("enable interrupt remapping (x2APIC) in the firmware's set-up",
                           BlastRadius::reboot),
                   {{"/proc/interrupts", "no line begins with IR-"}})};
}

// Returns the other devices of a device's group, which are attached with it or not at all.
std::vector<PciDevice const*> group_of(Machine const& machine, PciDevice const& device) {
    return functions_of(machine, [&](PciDevice const& other) {
        return other.address != device.address && other.iommu_group() == device.iommu_group() &&
               !is_bridge(other);
    });
}

std::string addresses_of(std::vector<PciDevice const*> const& devices) {
    std::string text;
    for (auto const* one : devices) text += (text.empty() ? "" : ", ") + to_string(one->address);
    return text;
}

// False for drivers that leave DMA to VFIO: Linux's driver_managed_dma.
bool blocks_group(PciDevice const& device) {
    auto const driver = device.driver().value_or("");
    return !driver.empty() && !on_vfio(device) && driver != "pci-stub" && driver != "pcieport";
}

constexpr std::string_view other_slot =
    "pcie_acs_override=… only hides that devices of a group reach each other past the IOMMU";

// Judges a device of any kind on VFIO, such as a GPU or an NVSwitch. The kernel gives a group to a
// VM only if no driver of the host has any device of it.
std::optional<Finding> judge_viable(Machine const& machine, PciDevice const& device) {
    auto blocking = group_of(machine, device);
    std::erase_if(blocking, [](auto const* one) { return !blocks_group(*one); });
    if (blocking.empty()) return std::nullopt;
    std::string drivers;
    Remedy remedy;
    for (auto const* one : blocking) {
        drivers += fmt::format("{}{} on {}", drivers.empty() ? "" : ", ", to_string(one->address),
                               *one->driver());
        auto node = "pci_" + to_string(one->address);
        std::ranges::replace_if(
            node, [](char const byte) { return byte == ':' || byte == '.'; }, '_');
        remedy.commands.push_back("virsh nodedev-detach " + node);
    }
    remedy.note = fmt::format(
        "only if the host can do without them; otherwise move one of the cards to a slot whose "
        "port has ACS; {}",
        other_slot);
    return failed(to_string(device.address),
                  fmt::format("is on {}, but its IOMMU group {} is not viable, so QEMU refuses it: "
                              "a driver of the host still has {}",
                              *device.driver(), *device.iommu_group(), drivers),
                  std::move(remedy),
                  {{file_of(device.address, "iommu_group"), *device.iommu_group()}});
}

std::optional<Finding> judge_group(Machine const& machine, PciDevice const& device) {
    if (on_vfio(device))
        if (auto finding = judge_viable(machine, device)) return finding;
    auto const others = device.pf() ? group_of(machine, device) : std::vector<PciDevice const*>();
    if (others.empty()) return std::nullopt;
    return failed(
        to_string(device.address),
        fmt::format("shares IOMMU group {} with {}", *device.iommu_group(), addresses_of(others)),
        by_hand(fmt::format("move the NIC to a slot whose port has ACS; {}", other_slot)),
        {{file_of(device.address, "iommu_group"), *device.iommu_group()}});
}

std::vector<Finding> judge_groups(Machine const& machine) {
    if (!machine.pci()) return {unknown("", machine.pci().error())};
    std::vector<Finding> findings;
    int vfs = 0, on_vfio_count = 0;
    for (auto const& device : *machine.pci()) {
        if (!device.pf() && !on_vfio(device)) continue;
        ++(device.pf() ? vfs : on_vfio_count);
        auto const link = file_of(device.address, "iommu_group");
        if (auto hidden = device.iommu_group() ? std::nullopt : unseen(machine, link))
            return {std::move(*hidden)};
        if (!device.iommu_group()) continue;
        if (auto finding = judge_group(machine, device)) findings.push_back(std::move(*finding));
    }
    if (vfs == 0 && on_vfio_count == 0)
        return {not_applicable("there are no VFs, and no device is on VFIO")};
    return or_else(std::move(findings),
                   ok("", vfs == 0 ? "every group with a device on VFIO can be attached"
                                   : "every VF has an IOMMU group of its own"));
}

std::vector<Finding> judge_override(Machine const& machine) {
    if (!machine.parameters()) return {unknown("", machine.parameters().error())};
    auto const* const override_ = find_parameter(*machine.parameters(), "pcie_acs_override");
    if (!override_) return {ok("", "ACS is not overridden")};
    return {warning(
        "",
        fmt::format("pcie_acs_override={} splits groups whose devices still reach each other past "
                    "the IOMMU, so a VM may reach another VM's memory",
                    override_->value),
        by_hand("remove it from the kernel's command line, and reboot", BlastRadius::reboot),
        {evidence_of(machine, "/proc/cmdline")})};
}

constexpr std::array rules{
    Rule{"cpu.virtualisation", "The CPU can run VMs", "kvm(4); Linux Documentation/virt/kvm",
         judge_virtualisation, AppliesTo::host},
    Rule{"iommu.enabled", "The IOMMU is on",
         "Linux Documentation/admin-guide/kernel-parameters.txt, intel_iommu and amd_iommu; "
         "setup guide, SR-IOV prerequisites",
         judge_enabled, AppliesTo::host},
    Rule{"iommu.interrupt_remapping", "Interrupts are remapped",
         "Linux drivers/vfio/vfio_iommu_type1.c, allow_unsafe_interrupts", judge_remapping,
         AppliesTo::host},
    Rule{"iommu.groups", "IOMMU groups can be attached",
         "Linux Documentation/driver-api/vfio.rst, groups; drivers with driver_managed_dma",
         judge_groups, AppliesTo::host},
    Rule{"iommu.acs_override", "ACS is not overridden",
         "the override's own warning in the kernel's log", judge_override, AppliesTo::host},
};

}  // namespace

constinit std::span<Rule const> const iommu_rules = rules;

}  // namespace vfmgr::checks
