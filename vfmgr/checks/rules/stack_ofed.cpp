// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "vfmgr/checks/peermem.hpp"
#include "vfmgr/checks/rdma_stack.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/checks/rules/stack.hpp"

namespace vfmgr::checks {
namespace {

// What the guide for GPUDirect requires.
constexpr std::pair ofed_required{23, 10};

// The module's version lacks the package's last part: 24.10-1.1.4 for 24.10-1.1.4.0.
bool same_ofed(OfedVersion const& one, OfedVersion const& other) {
    return one.text.starts_with(other.text) || other.text.starts_with(one.text);
}

std::vector<std::string> rebuild_and_restart(Machine const& machine) {
    std::vector<std::string> commands;
    auto const built = machine.facts.names("/var/lib/dkms/mlnx-ofed-kernel");
    if (built && !built->empty())
        commands.push_back(fmt::format("dkms autoinstall -k {}", machine.release));
    commands.emplace_back("/etc/init.d/openibd restart");
    return commands;
}

std::vector<PciDevice const*> connectx_pfs(Machine const& machine) {
    auto own = own_connectx(machine);
    std::erase_if(own, [](auto const* device) { return device->pf.has_value(); });
    return own;
}

}  // namespace

std::vector<Finding> judge_ofed(Machine const& machine) {
    auto const ofed = read_ofed(machine);
    if (!machine.pci) return {unknown("", machine.pci.error())};
    if (!ofed.running)
        if (auto const hidden = unseen(machine, "/sys/module/mlx5_core/version")) return {*hidden};
    if (own_connectx(machine).empty() && !ofed.installed && !ofed.running)
        return {not_applicable("this machine uses no ConnectX NIC, and has no OFED")};
    bool const loaded = module_loaded(machine, "mlx5_core") || module_loaded(machine, "mlx4_core");
    if (ofed.installed && !ofed.running && loaded)
        return {warning("",
                        fmt::format("OFED {} is installed, but the kernel's own drivers run",
                                    ofed.installed->text),
                        {rebuild_and_restart(machine), BlastRadius::host, {}, {}}, ofed.evidence)};
    if (ofed.installed && ofed.running && !same_ofed(*ofed.installed, *ofed.running))
        return {warning("",
                        fmt::format("OFED {} is installed, but {} runs", ofed.installed->text,
                                    ofed.running->text),
                        {rebuild_and_restart(machine), BlastRadius::host, {}, {}}, ofed.evidence)};
    if (!ofed.running)
        return {ok("", loaded ? "the kernel's own RDMA drivers run" : "there is no OFED",
                   ofed.evidence)};
    bool const for_gpu = !own_gpus(machine).empty() && judge_dma_buf(machine).can != Can::yes;
    if (for_gpu && std::pair(ofed.running->major, ofed.running->minor) < ofed_required)
        return {warning(
            "",
            fmt::format("OFED {} runs, but GPUDirect with nvidia-peermem needs 23.10 or newer",
                        ofed.running->text),
            by_hand("install a newer DOCA-OFED, then rebuild NVIDIA's modules", BlastRadius::host),
            ofed.evidence)};
    return {ok("", fmt::format("OFED {} runs", ofed.running->text), ofed.evidence)};
}

std::vector<Finding> judge_openibd(Machine const& machine) {
    if (!machine.pci) return {unknown("", machine.pci.error())};
    if (connectx_pfs(machine).empty()) return {not_applicable("there is no ConnectX PF")};
    if (!machine.units) return {unknown("", machine.units.error())};
    auto const unit = machine.units->find("openibd.service");
    if (unit == machine.units->end() || unit->second.load != "loaded")
        return {not_applicable("there is no openibd.service")};
    constexpr auto path = "/usr/lib/systemd/system/openibd.service.d/50-vfmgr.conf";
    if (machine.facts.text(path))
        return {ok("", "openibd.service checks whether VMs have VFs before it stops",
                   {evidence_of(machine, path)})};
    if (auto const hidden = unseen(machine, path)) return {*hidden};
    return {warning(
        "", "a restart of openibd unloads mlx5_core, and removes every VF from its running VM",
        by_hand("install the package vfmgr-cli: its drop-in makes systemd run vfctl drained before "
                "openibd stops; /etc/init.d/openibd bypasses systemd and that check"),
        {{"openibd.service", fmt::format("{}, {}", unit->second.active, unit->second.file)},
         absence_evidence(path)})};
}

std::vector<Finding> judge_firmware_tools(Machine const& machine) {
    if (!machine.pci) return {unknown("", machine.pci.error())};
    if (connectx_pfs(machine).empty()) return {not_applicable("there is no ConnectX PF")};
    auto const open_tool = machine.facts.text("/usr/bin/mstconfig");
    auto const mft = machine.facts.text("/usr/bin/mlxconfig");
    bool const started = module_loaded(machine, "mst_pciconf");
    if (open_tool) return {ok("", "mstconfig is installed")};
    if (mft)
        return {ok("", started ? "mlxconfig is installed, and mst is started"
                               : "mlxconfig is installed; mst start creates /dev/mst, which it "
                                 "does not need for a PCI address")};
    for (auto const& tool : {open_tool, mft})
        if (!tool.error().absent()) return {unknown("", tool.error())};
    return {warning(
        "",
        "neither mstconfig nor mlxconfig is installed, so the NIC's firmware settings (SRIOV_EN, "
        "NUM_OF_VFS) can't be read",
        by_command(is_debian(machine) ? "apt-get install mstflint" : "dnf install mstflint"),
        {absence_evidence("/usr/bin/mstconfig"), absence_evidence("/usr/bin/mlxconfig")})};
}

std::vector<Finding> judge_firmware_updater(Machine const& machine) {
    auto const folder = machine.facts.names("/opt/mellanox/mlnx-fw-updater");
    if (!folder) return {unknown("", folder.error())};
    constexpr auto path = "/etc/infiniband/openib.conf";
    auto const settings = "\n" + std::string(machine.facts.text(path).value_or(""));
    if (settings.find("\nRUN_FW_UPDATER_ONBOOT=yes") != settings.npos)
        return {warning("",
                        "openibd updates the NICs' firmware at boot; the new firmware waits for "
                        "another reset, and may change which VFs are possible",
                        by_command(fmt::format("sed -i 's/^RUN_FW_UPDATER_ONBOOT=yes/"
                                               "RUN_FW_UPDATER_ONBOOT=no/' {}",
                                               path)),
                        {{path, "RUN_FW_UPDATER_ONBOOT=yes"}})};
    if (folder->empty()) return {not_applicable("mlnx-fw-updater is not installed")};
    return {ok("", "mlnx-fw-updater writes firmware when its package is installed, not at boot",
               {{"/opt/mellanox/mlnx-fw-updater", "exists"}})};
}

}  // namespace vfmgr::checks
