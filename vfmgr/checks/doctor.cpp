// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/machine/nic.hpp"

namespace vfmgr::checks {

std::vector<Symptom> const& all_symptoms() {
    static std::vector<Symptom> const all{
        {"no-vfs",
         "VFs are not created",
         AppliesTo::host,
         {"sriov.firmware", "sriov.capable", "sriov.resources", "sriov.owner", "cpu.virtualisation",
          "iommu.enabled"}},
        {"vm-no-vf",
         "the VM can't see the VF",
         AppliesTo::host,
         {"cpu.virtualisation", "iommu.enabled", "iommu.interrupt_remapping", "sriov.capable",
          "sriov.resources", "iommu.groups", "pci.acs", "vfio.modules", "sriov.vf_driver",
          "libvirt.unit", "libvirt.version", "sriov.owner"}},
        {"rdma-fails",
         "RDMA connections fail",
         AppliesTo::both,
         {"stack.secure_boot", "stack.driver", "stack.core", "stack.symbols", "stack.ofed",
          "port.link_layer", "port.pf_down", "port.state", "port.cable", "port.subnet_manager",
          "soft_rdma.link", "port.gids", "port.mtu", "memory.locked", "qos.pfc", "port.counters",
          "log.mlx5", "log.iommu_fault"}},
        {"softroce",
         "SoftRoCE is not working",
         AppliesTo::both,
         {"soft_rdma.module", "soft_rdma.link", "port.gids", "soft_rdma.parameters",
          "soft_rdma.siw", "soft_rdma.persistence", "soft_rdma.exposed"}},
        {"vf-slow",
         "the VF is slow",
         AppliesTo::both,
         {"pci.link", "port.speed", "port.mtu", "port.cable", "qos.pfc", "qos.dscp",
          "port.counters", "memory.numa", "gpu.topology", "log.mlx5"}},
        {"peermem-wont-load",
         "nvidia-peermem won't load",
         AppliesTo::both,
         {"stack.secure_boot", "stack.dkms", "gpu.driver", "gpu.install_order", "gpu.peermem",
          "gpu.dmabuf", "gpu.nv_peer_mem", "gpu.peermem_at_boot", "log.peermem"}},
    };
    return all;
}

namespace {

bool applies(AppliesTo to, CheckedMachine machine) {
    return to == AppliesTo::both || (to == AppliesTo::host) == (machine == CheckedMachine::host);
}

// No device is bound to a VFIO driver, so no process can hold one.
bool has_no_vfio_devices(Machine const& machine) {
    return machine.pci && std::ranges::none_of(*machine.pci, on_vfio);
}

// VMs and processes that hold a VF; what can't be read counts as held.
std::vector<std::string> holders_of(Machine const& machine) {
    if (machine.kind == CheckedMachine::guest) return {};
    if (!machine.vfio_holders && has_no_vfio_devices(machine)) return {};
    if (!machine.vfio_holders)
        return {fmt::format("unknown: {}", to_string(machine.vfio_holders.error()))};
    std::set<std::string> names;
    for (auto const& holding : *machine.vfio_holders)
        names.insert(holding.vm.empty() ? "process " + holding.process : holding.vm);
    return {names.begin(), names.end()};
}

// Withholds commands that remove VFs from running VMs, while a VM or process holds one.
void hold_back(Remedy& remedy, std::vector<std::string> const& holders) {
    bool const disturbs =
        remedy.blast_radius == BlastRadius::host || remedy.blast_radius == BlastRadius::reboot;
    if (!disturbs || holders.empty()) return;
    remedy.commands.clear();
    remedy.drain = holders;
}

std::string_view sentence_of(BlastRadius blast_radius) {
    switch (blast_radius) {
        case BlastRadius::none:
            return "";
        case BlastRadius::netdev:
            return "interrupts its traffic for a moment";
        case BlastRadius::host:
            return "disturbs every VF and RDMA device of this machine";
        case BlastRadius::reboot:
            return "needs a reboot";
    }
    return "";
}

std::string describe(Remedy const& remedy) {
    std::string text;
    if (!remedy.note.empty()) text += fmt::format("      {}\n", remedy.note);
    for (auto const& command : remedy.commands) text += fmt::format("      $ {}\n", command);
    if (auto const sentence = sentence_of(remedy.blast_radius); !sentence.empty())
        text += fmt::format("      ({})\n", sentence);
    if (!remedy.drain.empty())
        text += fmt::format("      first free the VFs of: {}\n", fmt::join(remedy.drain, ", "));
    return text;
}

// Indents further lines of a file below the first.
std::string in_lines(std::string_view text) {
    std::string lines;
    for (char const byte : text)
        lines += byte == '\n' ? std::string("\n        ") : std::string(1, byte);
    return lines;
}

std::string describe(Finding const& finding) {
    auto text = fmt::format("{:<8} {}{}{}: {}\n", enum_name(finding.result), finding.rule,
                            finding.subject.empty() ? "" : " ", finding.subject, finding.detail);
    for (auto const& evidence : finding.evidence)
        text += fmt::format("      {}: {}\n", evidence.source, in_lines(evidence.text));
    return finding.remedy ? text + describe(*finding.remedy) : text;
}

bool good(Finding const& finding) {
    return finding.result == CheckResult::ok || finding.result == CheckResult::not_applicable;
}

}  // namespace

CheckReport diagnose(Facts const& facts, std::span<Rule const> rules) {
    auto const machine = read_machine(facts);
    auto const holders = holders_of(machine);
    CheckReport report{facts.machine, facts.collected_at, machine.release, {}};
    for (auto const& rule : rules) {
        if (!applies(rule.applies, facts.machine)) continue;
        for (auto& finding : rule.judge(machine)) {
            finding.rule = rule.id;
            if (finding.remedy) hold_back(*finding.remedy, holders);
            report.findings.push_back(std::move(finding));
        }
    }
    return report;
}

CheckReport narrow(CheckReport const& report, Symptom const& symptom) {
    auto narrowed = report;
    narrowed.findings.clear();
    for (auto const rule : symptom.rules) {
        bool cause = false;
        for (auto const& finding : report.findings) {
            if (finding.rule != rule) continue;
            narrowed.findings.push_back(finding);
            cause |= finding.result == CheckResult::failed;
        }
        if (cause) break;
    }
    return narrowed;
}

std::string describe(CheckReport const& report, Verbosity verbosity) {
    std::string text;
    std::string summary;
    // Sorts the worst first; equals stay in the rules' order.
    for (auto const& [result, name] : enum_names<CheckResult>) {
        auto const is_such = [&](Finding const& one) { return one.result == result; };
        auto const count = std::ranges::count_if(report.findings, is_such);
        if (count == 0) continue;
        summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", count, name);
        for (auto const& finding : report.findings)
            if (is_such(finding) && (verbosity.all || !good(finding))) text += describe(finding);
    }
    return text + (summary.empty() ? "no checks" : summary) + "\n";
}

}  // namespace vfmgr::checks
