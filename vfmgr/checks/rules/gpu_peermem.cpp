// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/checks/peermem.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/checks/rules/gpu.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::string_view load_peermem = "modprobe nvidia-peermem";

// Peermem can't work. Where DMA-BUF can be used, only programs that support nothing else fail.
Finding by_need(Machine const& machine, Peermem const& peermem, std::string detail) {
    auto remedy = rebuild_nvidia(machine);
    if (!remedy.commands.empty()) remedy.commands.emplace_back(load_peermem);
    bool const sure = surely_offers_gpudirect(machine);
    if (judge_dma_buf(machine).can != Can::yes && sure)
        return failed("", std::move(detail), std::move(remedy), peermem.evidence);
    detail += sure ? "; programs that use DMA-BUF don't need it"
                   : "; a GPU that offers no GPUDirect, like a GeForce, does not need it";
    return warning("", std::move(detail), std::move(remedy), peermem.evidence);
}

Finding not_offered(Machine const& machine, Peermem const& peermem) {
    auto const dma_buf = judge_dma_buf(machine);
    if (dma_buf.can == Can::yes)
        return ok("",
                  "nvidia-peermem can't work with this RDMA stack, which has no peer memory; it is "
                  "not needed: DMA-BUF can be used",
                  peermem.evidence);
    if (auto hidden = unread_so_far(machine)) return std::move(*hidden);
    if (!surely_offers_gpudirect(machine))
        return perhaps_no_gpudirect(
            "nvidia-peermem can't load: this RDMA stack has no ib_register_peer_memory_client",
            peermem.evidence);
    return failed(
        "", "nvidia-peermem can't load: this RDMA stack has no ib_register_peer_memory_client",
        by_hand("install DOCA-OFED, then rebuild NVIDIA's modules; or make DMA-BUF usable: " +
                dma_buf.why),
        peermem.evidence);
}

// Building the driver's modules again would not help.
Finding too_old(Machine const& machine, NvidiaDriver const& driver) {
    auto detail = fmt::format("NVIDIA's driver {} has no nvidia-peermem, which came with {}",
                              driver.version, branch_with_peermem);
    if (!surely_offers_gpudirect(machine)) return perhaps_no_gpudirect(std::move(detail), {});
    return failed("", std::move(detail),
                  by_hand(fmt::format("install NVIDIA's driver {} or newer; or build nv_peer_mem, "
                                      "the separate module that older drivers need",
                                      branch_with_peermem)),
                  {{"/proc/driver/nvidia/version", driver.version}});
}

}  // namespace

std::vector<Finding> judge_install_order(Machine const& machine) {
    if (auto none = no_gpudirect(machine)) return {*none};
    auto const ofed = read_ofed(machine);
    if (!ofed.running && !ofed.installed)
        if (auto const hidden = unseen(machine, "/sys/module/mlx5_core/version")) return {*hidden};
    if (!ofed.running && !ofed.installed)
        return {not_applicable("there is no OFED, so nothing had to be built after it")};
    auto const peermem = examine_peermem(machine);
    auto const version = ofed.running ? ofed.running->text : ofed.installed->text;
    switch (peermem.build) {
        case PeermemBuild::without_peers:
            return {by_need(machine, peermem,
                            fmt::format("nvidia-peermem was built before OFED {} was installed, so "
                                        "it has no peer memory: loading it fails with EINVAL",
                                        version))};
        case PeermemBuild::other_stack:
            return {by_need(machine, peermem,
                            fmt::format("nvidia-peermem was built against another RDMA stack than "
                                        "OFED {}",
                                        version))};
        case PeermemBuild::fits:
            return {ok("", fmt::format("nvidia-peermem fits OFED {}", version), peermem.evidence)};
        case PeermemBuild::absent:
            return {not_applicable("there is no nvidia-peermem")};
        case PeermemBuild::unknown:
            break;
    }
    if (auto hidden = unread_so_far(machine)) return {std::move(*hidden)};
    return {not_known("", "nothing shows which RDMA stack nvidia-peermem was built for")};
}

std::vector<Finding> judge_peermem(Machine const& machine) {
    if (auto none = no_gpudirect(machine)) return {*none};
    if (!machine.modules()) return {unknown("", machine.modules().error())};
    auto const peermem = examine_peermem(machine);
    if (peermem.loaded)
        return {ok("", "nvidia_peermem is loaded", {{"/proc/modules", "nvidia_peermem"}})};
    if (module_loaded(machine, "nv_peer_mem"))
        return {ok("", "the old nv_peer_mem is loaded and does the same")};
    // The GPU operator's driver comes in a container: its modules are not among the VM's files.
    if (machine.kind == CheckedMachine::guest && runs_kubelet(machine) &&
        !module_file(machine, "nvidia"))
        return {
            not_applicable("nvidia-peermem comes with the GPU operator's driver: see "
                           "kubernetes.gpu_operator")};
    if (peermem.offered == false) return {not_offered(machine, peermem)};
    auto const driver = nvidia_driver(machine);
    if (driver && driver->branch < branch_with_peermem) return {too_old(machine, *driver)};
    switch (peermem.build) {
        case PeermemBuild::absent:
            return {by_need(
                machine, peermem,
                fmt::format("there is no nvidia-peermem for kernel {}", machine.release()))};
        case PeermemBuild::without_peers:
            return {by_need(
                machine, peermem,
                "nvidia-peermem is not loaded and can't be: it was built without peer "
                "memory, and loading it fails with EINVAL and no line in the kernel's log")};
        case PeermemBuild::other_stack:
            return {by_need(machine, peermem,
                            "nvidia-peermem is not loaded and can't be: its symbols belong to "
                            "another RDMA stack")};
        case PeermemBuild::fits:
        case PeermemBuild::unknown:
            break;
    }
    if (judge_dma_buf(machine).can == Can::yes)
        return {ok("", fmt::format("nvidia_peermem is not loaded, and is not needed where DMA-BUF "
                                   "is used; for programs without DMA-BUF: {}",
                                   load_peermem))};
    if (auto hidden = unread_so_far(machine)) return {std::move(*hidden)};
    if (!surely_offers_gpudirect(machine))
        return {perhaps_no_gpudirect(
            fmt::format("nvidia_peermem is not loaded (to load it: {}), and DMA-BUF can't be used",
                        load_peermem),
            peermem.evidence)};
    return {failed("", "nvidia_peermem is not loaded, and DMA-BUF can't be used",
                   by_command(std::string(load_peermem)), peermem.evidence)};
}

std::vector<Finding> judge_nv_peer_mem(Machine const& machine) {
    if (auto none = no_gpudirect(machine)) return {*none};
    if (!machine.modules()) return {unknown("", machine.modules().error())};
    std::vector<Evidence> evidence;
    bool const loaded = module_loaded(machine, "nv_peer_mem");
    if (loaded) evidence.push_back({"/proc/modules", "nv_peer_mem"});
    if (auto const file = module_file(machine, "nv_peer_mem"))
        evidence.push_back({"modules.dep", std::string(*file)});
    if (auto const* unit = find_unit(machine, "nv_peer_mem.service"); unit && unit->installed())
        evidence.push_back({"nv_peer_mem.service", unit->active});
    if (evidence.empty()) return {ok("", "there is no nv_peer_mem")};
    auto const driver = nvidia_driver(machine);
    if (driver && driver->branch < branch_with_peermem)
        return {ok("",
                   fmt::format("nv_peer_mem serves NVIDIA's driver {}, which has no nvidia-peermem",
                               driver->version),
                   evidence)};
    if (auto hidden = unread_so_far(machine)) return {std::move(*hidden)};
    Remedy remedy{{"systemctl disable --now nv_peer_mem"}, BlastRadius::none};
    if (loaded) remedy.commands.emplace_back("rmmod nv_peer_mem");
    remedy.commands.emplace_back(is_debian(machine)
                                     ? "dpkg -P nvidia-peer-memory nvidia-peer-memory-dkms"
                                     : "rpm -e nvidia_peer_memory");
    remedy.commands.emplace_back(load_peermem);
    return {warning(
        "", "the old nv_peer_mem is still present; NVIDIA's driver has nvidia-peermem in its place",
        std::move(remedy), evidence)};
}

namespace {

// A line that names only the module, or a modprobe rule that pulls it in.
bool loads_peermem(std::string_view path, std::string_view text) {
    bool const rules = contains(path, "/modprobe.d/");
    while (!text.empty()) {
        auto const line = trimmed(take_line(text));
        if (line.starts_with('#') || line.starts_with(';')) continue;
        for (auto const name : {"nvidia-peermem", "nvidia_peermem"}) {
            bool const pulls = line.starts_with("softdep ") || line.starts_with("install ");
            if (rules ? pulls && contains(line, name) : line == name) return true;
        }
    }
    return false;
}

}  // namespace

std::vector<Finding> judge_peermem_at_boot(Machine const& machine) {
    if (!machine.modules()) return {unknown("", machine.modules().error())};
    if (!module_loaded(machine, "nvidia_peermem"))
        return {not_applicable("nvidia_peermem is not loaded now")};
    for (auto const pattern :
         {"/etc/modules", "/etc/modules-load.d/*.conf", "/usr/lib/modules-load.d/*.conf",
          "/etc/modprobe.d/*.conf", "/usr/lib/modprobe.d/*.conf"})
        for (auto const& [path, fact] : machine.facts.files(pattern))
            if (loads_peermem(path, fact->bytes))
                return {ok("", "nvidia_peermem is loaded at boot",
                           {{std::string(path), "nvidia-peermem"}})};
    constexpr std::string_view unit = "vf-guest-peermem.service";
    for (auto const& [path, folder] : machine.facts.folders("/etc/systemd/system/*.wants"))
        if (std::ranges::find(folder->names, unit) != folder->names.end())
            return {ok("", "nvidia_peermem is loaded at boot, once OFED and the driver are present",
                       {{std::string(path), std::string(unit)}})};
    if (runs_kubelet(machine))
        return {ok("", "nvidia_peermem is loaded; in Kubernetes the GPU operator loads it")};
    if (auto hidden = unread_so_far(machine)) return {std::move(*hidden)};
    return {warning("", "nvidia_peermem was loaded by hand, and will not be loaded after a reboot",
                    by_command("echo nvidia-peermem > /etc/modules-load.d/nvidia-peermem.conf",
                               "alternatively, run vf-guest peermem --at-boot, which also detects "
                               "when that would be too early"),
                    {{"/etc/modules-load.d", "no nvidia-peermem"}})};
}

}  // namespace vfmgr::checks
