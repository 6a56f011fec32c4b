// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/peermem_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "guest-tools/gpu/load_peermem.hpp"
#include "vfmgr/checks/peermem.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/checks/rules/gpu.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::guest::gpu {
namespace {

using checks::branch_with_peermem;
using checks::Machine;
using checks::module_loaded;

PeermemPlan nothing(std::string module, std::string reason) {
    PeermemPlan plan;
    plan.module = std::move(module);
    plan.reason = std::move(reason);
    return plan;
}

PeermemPlan already_loaded(std::string module) {
    auto plan = nothing(module, module + " is loaded");
    plan.loaded = true;
    return plan;
}

PeermemPlan decided(PeermemPlan plan) {
    if (!plan.hindrances.empty()) {
        plan.next = PeermemNext::impossible;
        plan.reason = fmt::format("{} can't be loaded", plan.module);
    } else if (!plan.awaited.empty()) {
        plan.next = PeermemNext::wait;
        plan.reason = fmt::format("{} needs something that is not ready yet", plan.module);
    } else {
        plan.next = PeermemNext::load;
        plan.reason = fmt::format("nothing known keeps {} from loading", plan.module);
    }
    return plan;
}

bool is_integrated(Machine const& machine) {
    return machine.facts.text("/sys/firmware/devicetree/base/compatible")
               .value_or("")
               .find("nvidia,tegra") != std::string_view::npos;
}

// --- NVIDIA's driver ---

void check_driver(Machine const& machine, PeermemPlan& plan) {
    auto const await = [&](std::string observed) {
        plan.awaited.push_back({"NVIDIA's driver", std::move(observed)});
    };
    if (module_loaded(machine, "nvidia")) {
        auto const gpus = checks::own_gpus(machine);
        bool const has_one =
            std::ranges::any_of(gpus, [](auto const* gpu) { return gpu->driver() == "nvidia"; });
        // The machine looks the same while the driver is still starting.
        if (!has_one) await("nvidia is loaded but has no GPU (dmesg | grep NVRM says why)");
        return;
    }
    if (checks::module_file(machine, "nvidia"))
        return await("nvidia is installed but not loaded (modprobe nvidia)");
    if (checks::runs_kubelet(machine))
        return await("the GPU operator's container has not loaded nvidia");
    if (checks::is_built_at_boot(machine))
        return await(fmt::format("akmods has not built nvidia for kernel {}", machine.release()));
    // One finding is enough for several GPUs without a driver.
    auto findings = checks::judge_gpu_driver(machine);
    auto const bad = std::ranges::find_if(findings, is_bad);
    plan.hindrances.push_back(of_rule(
        "gpu.driver", bad != findings.end()
                          ? std::move(*bad)
                          : checks::failed("", "NVIDIA's driver is not installed",
                                           checks::by_hand("install it, after DOCA-OFED"))));
}

// --- the RDMA stack ---

// Whether the installed stack has the peer memory that the loaded one lacks: then openibd has yet
// to replace the loaded one.
bool peers_are_installed(Machine const& machine) {
    auto const path = fmt::format("/lib/modules/{}/modules.symbols", machine.release());
    return machine.facts.text(path).value_or("").find("symbol:ib_register_peer_memory_client ") !=
           std::string_view::npos;
}

void check_rdma(Machine const& machine, checks::Peermem const& peermem, PeermemPlan& plan) {
    auto const await = [&](std::string observed) {
        plan.awaited.push_back({"OFED", std::move(observed)});
    };
    for (auto const* device : checks::own_connectx(machine)) {
        auto const driver = std::string(checks::driver_of_connectx(*device));
        if (!checks::module_present(machine, driver)) return await(driver + " is not loaded");
    }
    if (!checks::module_present(machine, "ib_core")) return await("ib_core is not loaded");
    if (peermem.offered.value_or(true)) return;
    if (peers_are_installed(machine) || checks::runs_kubelet(machine))
        return await(
            "the loaded ib_core is the kernel's own, without ib_register_peer_memory_client");
    plan.hindrances.push_back(failed_by(
        "gpu.peermem", "this RDMA stack has no ib_register_peer_memory_client",
        checks::by_hand("install DOCA-OFED, then rebuild NVIDIA's modules; or use DMA-BUF: " +
                        checks::judge_dma_buf(machine).why),
        peermem.evidence));
}

// --- the module's file ---

// "5.15.0-125-generic": kernels for which DKMS has built NVIDIA's modules.
std::string built_for(Machine const& machine) {
    std::string kernels;
    for (auto const& [path, folder] : machine.facts.unnoted().folders) {
        if (!checks::matches("/var/lib/dkms/nvidia/*", path) || folder.error != 0) continue;
        for (auto const& name : folder.names)
            if (name != "source" && name != "build" && !name.starts_with("kernel-"))
                kernels += (kernels.empty() ? "" : ", ") + name;
    }
    return kernels;
}

// Whether the driver is loaded but not among this machine's files.
bool driver_is_a_containers(Machine const& machine) {
    return module_loaded(machine, "nvidia") && !checks::module_file(machine, "nvidia");
}

Finding absent(Machine const& machine, checks::Peermem const& peermem) {
    if (driver_is_a_containers(machine))
        return failed_by("gpu.peermem",
                         "NVIDIA's driver belongs to a container, which alone has nvidia-peermem",
                         checks::by_command("chroot /run/nvidia/driver modprobe nvidia-peermem"),
                         peermem.evidence);
    auto const others = built_for(machine);
    return failed_by("gpu.peermem",
                     fmt::format("there is no nvidia-peermem for kernel {}{}", machine.release(),
                                 others.empty() ? "" : "; it is built for " + others),
                     checks::rebuild_nvidia(machine), peermem.evidence);
}

void check_file(Machine const& machine, checks::Peermem const& peermem, PeermemPlan& plan) {
    using checks::PeermemBuild;
    auto const add_order = [&](char const* detail) {
        plan.hindrances.push_back(failed_by("gpu.install_order", detail,
                                            checks::rebuild_nvidia(machine), peermem.evidence));
    };
    switch (peermem.build) {
        case PeermemBuild::absent:
            if (driver_is_a_containers(machine) && checks::runs_kubelet(machine))
                plan.awaited.push_back({"the GPU operator",
                                        "only its container has nvidia-peermem, which it loads "
                                        "when driver.rdma.enabled=true is set "
                                        "(kubernetes.gpu_operator of vf-guest doctor)"});
            else
                plan.hindrances.push_back(absent(machine, peermem));
            return;
        case PeermemBuild::without_peers:
            return add_order(
                "nvidia-peermem was built where no RDMA stack had peer memory: it only returns "
                "EINVAL, without a message in the kernel log");
        case PeermemBuild::other_stack:
            return add_order(
                "nvidia-peermem was built against another RDMA stack: its symbols have other "
                "versions");
        case PeermemBuild::unknown:
            plan.remarks.emplace_back(
                "it can't be determined whether the module fits the RDMA stack");
            return;
        case PeermemBuild::fits:
            return;
    }
}

// --- both kinds of GPU ---

PeermemPlan plan_integrated(Machine const& machine) {
    PeermemPlan plan;
    plan.module = "nvidia-p2p";
    if (module_loaded(machine, "nvidia_p2p")) return already_loaded(plan.module);
    auto const there = checks::module_exists(machine, "nvidia_p2p");
    for (auto& finding : checks::judge_igpu(machine))
        if (there && !*there && is_bad(finding))
            plan.hindrances.push_back(of_rule("gpu.igpu", std::move(finding)));
    check_kernel(machine, "nvidia_p2p", plan.hindrances);
    return decided(std::move(plan));
}

PeermemPlan plan_card(Machine const& machine, PeermemOptions options) {
    PeermemPlan plan;
    plan.module = "nvidia-peermem";
    auto const peermem = checks::examine_peermem(machine);
    if (peermem.loaded) return already_loaded(plan.module);
    auto const driver = checks::nvidia_driver(machine);
    bool const old_loaded = module_loaded(machine, "nv_peer_mem");
    if (old_loaded && driver && driver->branch < branch_with_peermem)
        return nothing(plan.module,
                       fmt::format("nv_peer_mem is loaded, which is what NVIDIA's driver {} has",
                                   driver->version));
    auto const dma_buf = checks::judge_dma_buf(machine);
    if (dma_buf.can == checks::Can::yes && !options.despite_dma_buf)
        return nothing(plan.module,
                       "DMA-BUF can be used and is preferred; nothing has to be loaded for it: " +
                           dma_buf.why);
    if (driver && dma_buf.can != checks::Can::yes)
        plan.remarks.push_back(
            "DMA-BUF, the preferred way, " +
            std::string(dma_buf.can == checks::Can::no ? "can't be used here: " : "may be used: ") +
            dma_buf.why);
    if (!checks::surely_offers_gpudirect(machine))
        plan.remarks.emplace_back(
            "only CUDA reports whether this GPU offers GPUDirect at all (a GeForce does not): the "
            "module loads all the same, and registering memory fails");
    check_driver(machine, plan);
    check_rdma(machine, peermem, plan);
    // A driver that is still to be installed brings its own file.
    bool const file_may_come =
        !module_loaded(machine, "nvidia") && !checks::module_file(machine, "nvidia");
    if (!file_may_come) check_file(machine, peermem, plan);
    if (old_loaded)
        for (auto& finding : checks::judge_nv_peer_mem(machine))
            if (is_bad(finding))
                plan.hindrances.push_back(of_rule("gpu.nv_peer_mem", std::move(finding)));
    check_kernel(machine, "nvidia_peermem", plan.hindrances);
    return decided(std::move(plan));
}

}  // namespace

Finding of_rule(std::string rule, Finding finding) {
    finding.rule = std::move(rule);
    return finding;
}

Finding failed_by(std::string rule, std::string detail, Remedy remedy,
                  std::vector<Evidence> evidence) {
    return of_rule(std::move(rule),
                   checks::failed("", std::move(detail), std::move(remedy), std::move(evidence)));
}

PeermemPlan peermem_plan(Machine const& machine, PeermemOptions options) {
    if (!machine.pci()) {
        PeermemPlan plan;
        plan.module = "nvidia-peermem";
        plan.hindrances.push_back(
            of_rule("gpu.driver", checks::unknown("", machine.pci().error())));
        return decided(std::move(plan));
    }
    auto const gpus = checks::own_gpus(machine);
    bool const integrated = gpus.empty() && is_integrated(machine);
    if (gpus.empty() && !integrated)
        return nothing({}, "there is no NVIDIA GPU that this machine uses itself");
    if (!checks::has_rdma_nic(machine)) return nothing({}, "there is no NIC with RDMA in hardware");
    return integrated ? plan_integrated(machine) : plan_card(machine, options);
}

}  // namespace vfmgr::guest::gpu
