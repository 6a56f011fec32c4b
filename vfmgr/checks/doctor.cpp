// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/checks/causes.hpp"
#include "vfmgr/checks/claims.hpp"
#include "vfmgr/machine/nic.hpp"

namespace vfmgr::checks {

std::vector<Symptom> const& all_symptoms() {
    static std::vector<Symptom> const all{
        {"no-vfs",
         "VFs are not created",
         AppliesTo::host,
         {"log.crash", "log.pcie", "sriov.firmware", "sriov.capable", "sriov.resources",
          "sriov.owner", "cpu.virtualisation", "iommu.enabled"}},
        {"vm-no-vf",
         "the VM can't see the VF",
         AppliesTo::host,
         {"cpu.virtualisation", "iommu.enabled", "iommu.interrupt_remapping", "sriov.capable",
          "sriov.resources", "iommu.groups", "pci.acs", "vfio.modules", "sriov.vf_driver",
          "libvirt.unit", "libvirt.version", "sriov.owner"}},
        {"rdma-fails",
         "RDMA connections fail",
         AppliesTo::both,
         {"log.crash",      "log.pcie",      "stack.secure_boot", "stack.driver",
          "stack.core",     "stack.symbols", "stack.ofed",        "port.link_layer",
          "port.pf_down",   "port.state",    "port.cable",        "port.subnet_manager",
          "soft_rdma.link", "port.gids",     "port.mtu",          "memory.locked",
          "qos.pfc",        "port.counters", "log.mlx5",          "log.nic",
          "log.iommu_fault"}},
        {"softroce",
         "SoftRoCE is not working",
         AppliesTo::both,
         {"soft_rdma.module", "soft_rdma.link", "port.gids", "soft_rdma.parameters",
          "soft_rdma.siw", "soft_rdma.persistence", "soft_rdma.exposed"}},
        {"vf-slow",
         "the VF is slow",
         AppliesTo::both,
         {"log.pcie", "pci.link", "port.speed", "port.mtu", "port.cable", "qos.pfc", "qos.dscp",
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
    return machine.pci() && std::ranges::none_of(*machine.pci(), on_vfio);
}

// VMs and processes that hold a VF; what can't be read counts as held.
std::vector<std::string> holders_of(Machine const& machine) {
    if (machine.kind == CheckedMachine::guest) return {};
    if (!machine.vfio_holders() && has_no_vfio_devices(machine)) return {};
    if (!machine.vfio_holders())
        return {fmt::format("any VM that has some; which do is unknown: {}",
                            to_string(machine.vfio_holders().error()))};
    std::set<std::string> names;
    for (auto const& holding : *machine.vfio_holders())
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

}  // namespace

CheckReport diagnose(Facts const& facts, std::span<Rule const> rules) {
    auto const machine = read_machine(facts);
    auto const holders = holders_of(machine);
    Relatives const relatives(machine);
    static_cast<void>(machine.reads->take());
    CheckReport report{facts.machine, facts.collected_at, machine.release.peek(), {}};
    for (auto const& rule : rules) {
        if (!applies(rule.applies, facts.machine)) continue;
        auto findings = rule.judge(machine);
        limit_claims(relatives, rule.rests_on, machine.reads->take(), findings);
        for (auto& finding : findings) {
            finding.rule = rule.id;
            report.findings.push_back(std::move(finding));
        }
    }
    explain(machine, relatives, report.findings);
    for (auto& finding : report.findings)
        if (finding.remedy) hold_back(*finding.remedy, holders);
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

}  // namespace vfmgr::checks
