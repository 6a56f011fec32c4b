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

std::vector<Finding> judge_virtualisation(Machine const& machine) {
    if (!machine.cpu()) return {unknown("", machine.cpu().error())};
    bool const usable = module_loaded(machine, "kvm_intel") || module_loaded(machine, "kvm_amd");
    auto const devices = machine.facts.names("/dev");
    bool const node = devices && std::ranges::find(*devices, "kvm") != devices->end();
    if (node) return {ok("", "KVM is available", {{"/dev/kvm", "exists"}})};
    if (!devices) return {unknown("", devices.error())};
    // Other architectures have neither vmx nor svm.
    if (machine.cpu()->vendor == CpuVendor::other)
        return {failed("", "there is no /dev/kvm",
                       by_command("modprobe kvm", "on POWER: modprobe kvm_hv"),
                       {absence_evidence("/dev/kvm")})};
    if (!machine.cpu()->virtualisation)
        return {failed(
            "", "the CPU shows no virtualisation extension (vmx or svm)",
            by_hand(
                machine.cpu()->hypervisor
                    ? "this machine is a VM itself: enable nested virtualisation for it on its host"
                    : "enable VT-x or SVM in the firmware's set-up",
                BlastRadius::reboot),
            {{"/proc/cpuinfo", "flags without vmx and svm"}})};
    auto const module = machine.cpu()->vendor == CpuVendor::amd ? "kvm_amd" : "kvm_intel";
    return {failed("", usable ? "there is no /dev/kvm" : fmt::format("{} is not loaded", module),
                   by_command(fmt::format("modprobe {}", module)), {absence_evidence("/dev/kvm")})};
}

// Names the firmware, or the hypervisor, that has the switch.
std::string switch_of_iommu(Cpu const& cpu) {
    if (cpu.hypervisor)
        return "this machine is a VM itself: give it an IOMMU on its host (libvirt: <iommu "
               "model='intel'><driver intremap='on'/></iommu>)";
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
    if (machine.cpu()->vendor == CpuVendor::other && !has_table(machine, table))
        return {
            failed("", "the kernel uses no IOMMU",
                   by_hand("enable the IOMMU (SMMU) in the firmware's set-up", BlastRadius::reboot),
                   evidence)};
    if (!has_table(machine, table)) {
        evidence.push_back(absence_evidence("/sys/firmware/acpi/tables/" + table));
        return {failed("", fmt::format("the firmware offers no IOMMU: it has no {} table", table),
                       by_hand(switch_of_iommu(*machine.cpu()), BlastRadius::reboot), evidence)};
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
    if (machine.cpu()->vendor == CpuVendor::other)
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

// Other functions of a VF's group, which would have to be attached with it.
std::vector<Finding> judge_groups(Machine const& machine) {
    if (!machine.pci()) return {unknown("", machine.pci().error())};
    std::vector<Finding> findings;
    for (auto const& vf : *machine.pci()) {
        if (!vf.pf()) continue;
        auto const link = file_of(vf.address, "iommu_group");
        if (auto const hidden = vf.iommu_group() ? std::nullopt : unseen(machine, link))
            return {*hidden};
        if (!vf.iommu_group()) continue;
        std::string others;
        for (auto const& other : *machine.pci())
            if (other.address != vf.address && other.iommu_group() == vf.iommu_group() &&
                !is_bridge(other))
                others += (others.empty() ? "" : ", ") + to_string(other.address);
        if (others.empty()) continue;
        findings.push_back(
            failed(to_string(vf.address),
                   fmt::format("shares IOMMU group {} with {}", *vf.iommu_group(), others),
                   by_hand("move the NIC to a slot whose port has ACS; pcie_acs_override=… only "
                           "hides that devices of a group reach each other past the IOMMU"),
                   {{link, *vf.iommu_group()}}));
    }
    bool const any =
        std::ranges::any_of(*machine.pci(), [](auto const& one) { return !!one.pf(); });
    return or_else(std::move(findings), any ? ok("", "every VF has an IOMMU group of its own")
                                            : not_applicable("there are no VFs"));
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
    Rule{"iommu.groups", "Each VF has an IOMMU group of its own",
         "Linux Documentation/driver-api/vfio.rst, groups", judge_groups, AppliesTo::host},
    Rule{"iommu.acs_override", "ACS is not overridden",
         "the override's own warning in the kernel's log", judge_override, AppliesTo::host},
};

}  // namespace

constinit std::span<Rule const> const iommu_rules = rules;

}  // namespace vfmgr::checks
