// SPDX-License-Identifier: Apache-2.0
// How to configure Kubernetes in a VM: its GPU operator must do what the VM needs.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "vfmgr/checks/peermem.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/checks/rules/gpu.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::checks {
namespace {

enum class Release { installed, missing };

// The documentation lets helm choose the release's name, so only helm knows it.
Remedy helm(Release release, std::string const& settings, std::string const& note) {
    auto const command =
        release == Release::installed
            ? "helm upgrade RELEASE nvidia/gpu-operator -n gpu-operator --reuse-values"
            : "helm install --wait --generate-name -n gpu-operator --create-namespace "
              "nvidia/gpu-operator";
    return by_hand(
        fmt::format("{}. Where helm can reach the cluster, run: {} {}", note, command, settings));
}

std::vector<Finding> judge_gpu_operator(Machine const& machine) {
    if (auto const hidden = unseen(machine, "/var/lib/kubelet"); hidden && !runs_kubelet(machine))
        return {*hidden};
    if (!runs_kubelet(machine)) return {not_applicable("this machine runs no kubelet")};
    if (!machine.pci()) return {unknown("", machine.pci().error())};
    if (own_gpus(machine).empty() || !has_rdma_nic(machine))
        return {not_applicable("this machine does not have both an NVIDIA GPU and an RDMA NIC")};
    bool const peermem = module_loaded(machine, "nvidia_peermem");
    bool const loaded = module_loaded(machine, "nvidia");
    auto const ofed = read_ofed(machine);
    // The operator's driver comes in a container, and its modules are not among the VM's files.
    if (auto const file = module_file(machine, "nvidia")) {
        std::vector<Evidence> evidence{{"modules.dep", std::string(*file)}};
        auto const settings = "--set driver.enabled=false";
        if (peermem || judge_dma_buf(machine).can == Can::yes)
            return {ok("",
                       fmt::format("NVIDIA's driver is the VM's own, and can do GPUDirect; the GPU "
                                   "operator needs {}",
                                   settings),
                       evidence)};
        if (auto hidden = unread_so_far(machine)) return {std::move(*hidden)};
        return {warning("",
                        "NVIDIA's driver is the VM's own, so the GPU operator loads no "
                        "nvidia-peermem: driver.rdma.enabled applies only to the operator's driver",
                        helm(Release::installed, settings, "fix gpu.peermem in the VM"), evidence)};
    }
    bool const host_mofed = ofed.running || ofed.installed;
    auto const settings = std::string("--set driver.rdma.enabled=true") +
                          (host_mofed ? " --set driver.rdma.useHostMofed=true" : "");
    auto evidence = ofed.evidence;
    evidence.push_back({"/proc/modules", fmt::format("{}nvidia, {}nvidia_peermem",
                                                     loaded ? "" : "no ", peermem ? "" : "no ")});
    if (peermem) return {ok("", "the GPU operator's driver runs with nvidia_peermem", evidence)};
    if (loaded && judge_dma_buf(machine).can == Can::yes)
        return {ok("",
                   fmt::format("the GPU operator's driver runs, and DMA-BUF can be used; {} is for "
                               "programs that support only nvidia-peermem",
                               settings),
                   evidence)};
    if (auto hidden = unread_so_far(machine)) return {std::move(*hidden)};
    auto const note = host_mofed
                          ? "OFED is installed in the VM"
                          : "the VM has no OFED: let the network operator install it, or use "
                            "NVIDIA's open kernel modules, which use DMA-BUF and need none";
    return {warning("",
                    loaded ? "the GPU operator's driver runs without nvidia_peermem"
                           : "the GPU operator has not loaded NVIDIA's driver",
                    helm(loaded ? Release::installed : Release::missing, settings, note),
                    evidence)};
}

constexpr std::array kubernetes{
    Rule{"kubernetes.gpu_operator", "The GPU operator is configured for RDMA",
         "NVIDIA GPU Operator documentation, GPUDirect RDMA", judge_gpu_operator, AppliesTo::guest},
};

}  // namespace

bool runs_kubelet(Machine const& machine) {
    auto const has = [&](std::string_view folder) {
        auto const names = machine.facts.names(folder);
        return names && !names->empty();
    };
    return has("/var/lib/kubelet") || has("/etc/kubernetes");
}

constinit std::span<Rule const> const kubernetes_rules = kubernetes;

}  // namespace vfmgr::checks
