// SPDX-License-Identifier: Apache-2.0
// The kernel's half of RDMA: its modules, their origin, and whether they can be built and loaded.
#include "vfmgr/checks/rules/stack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "vfmgr/checks/peermem.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::checks {
namespace {

constexpr auto secure_boot_variable =
    "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
constexpr std::string_view lockdown_file = "/sys/kernel/security/lockdown";

// Modules that are not from the kernel's package, which signs its own.
std::vector<std::string> foreign_modules(Machine const& machine) {
    std::vector<std::string> foreign;
    for (auto const module : {"mlx5_core", "ib_core", "nvidia", "nvidia_peermem", "nv_peer_mem"}) {
        auto const file = module_file(machine, module);
        if (file && !file->starts_with("kernel/")) foreign.emplace_back(module);
    }
    return foreign;
}

// The kernel's messages for a rejected signature; newer ones start with the module.
LogLine const* rejection(KernelLog const& log, std::vector<std::string> const& missing) {
    constexpr std::array<std::array<std::string_view, 2>, 3> words{
        {{"oading of unsigned module", "is rejected"},
         {"oading of module with unavailable key", "is rejected"},
         {"Lockdown:", "unsigned module loading is restricted"}}};
    for (auto const& line : log.lines) {
        bool const rejects = std::ranges::any_of(words, [&](auto const& both) {
            return contains(line.text, both[0]) && contains(line.text, both[1]);
        });
        auto const name = line.text.substr(0, line.text.find(':'));
        bool const unnamed = name == "Lockdown" || name.size() == line.text.size();
        if (rejects && (unnamed || std::ranges::find(missing, name) != missing.end())) return &line;
    }
    return nullptr;
}

std::vector<PciDevice const*> connectx_pfs(Machine const& machine) {
    auto own = own_connectx(machine);
    std::erase_if(own, [](auto const* device) { return device->pf().has_value(); });
    return own;
}

// The key that DKMS signs with; Ubuntu's has its own path.
std::optional<std::string> signing_key(Machine const& machine) {
    for (auto const path : {"/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der"})
        if (machine.facts.text(path)) return path;
    return std::nullopt;
}

Remedy enroll(Machine const& machine) {
    auto const key = signing_key(machine);
    if (!key)
        return by_hand(
            "sign the modules with a key of your own and enrol it (dkms(8): mok_signing_key, "
            "mok_certificate), or install modules that the distribution signs",
            BlastRadius::reboot);
    return {{fmt::format("mokutil --import {}", *key), "reboot"},
            BlastRadius::reboot,
            "it asks for a password, and the firmware asks for it again at the next start: choose "
            "\"Enroll MOK\""};
}

}  // namespace

std::vector<Finding> judge_secure_boot(Machine const& machine) {
    auto const variable = machine.facts.text(secure_boot_variable);
    if (!variable && variable.error().absent())
        return {not_applicable("this machine has no Secure Boot")};
    if (!variable) return {unknown("", variable.error())};
    // Four bytes of attributes, then the value.
    if (variable->size() != 5) return {unknown("", {secure_boot_variable, EBADMSG})};
    if ((*variable)[4] != 1) return {ok("", "Secure Boot is off")};
    Evidence const on{"SecureBoot", "1"};
    std::vector<std::string> missing;
    auto const foreign = foreign_modules(machine);
    for (auto const& module : foreign)
        if (!module_loaded(machine, module)) missing.push_back(module);
    auto const* const line = machine.log() ? rejection(*machine.log(), missing) : nullptr;
    auto const not_loaded = fmt::format("{} {} not loaded", fmt::join(missing, ", "),
                                        missing.size() == 1 ? "is" : "are");
    if (line && !missing.empty())
        return {failed(
            "", "Secure Boot is on, and the kernel refuses a module's signature; " + not_loaded,
            enroll(machine), {on, evidence_of(*line)})};
    if (foreign.empty())
        return {ok("", "Secure Boot is on, and every RDMA module is the kernel's own", {on})};
    if (missing.size() == foreign.size() && !signing_key(machine))
        return {warning(
            "", fmt::format("Secure Boot is on, {}, and DKMS has no key to sign with", not_loaded),
            enroll(machine), {on, absence_evidence("/var/lib/dkms/mok.pub")})};
    return {ok("", "Secure Boot is on, and the kernel refused no RDMA or GPU module's signature",
               {on})};
}

namespace {

std::vector<Finding> judge_lockdown(Machine const& machine) {
    auto const text = machine.facts.text(lockdown_file);
    if (!text && text.error().absent()) return {not_applicable("this kernel shows no lockdown")};
    if (!text) return {unknown("", text.error())};
    auto const from = text->find('[');
    auto const to = text->find(']');
    auto const mode = from == text->npos || to == text->npos || to < from
                          ? std::string_view()
                          : text->substr(from + 1, to - from - 1);
    if (mode == "none") return {ok("", "the kernel is not locked down")};
    std::vector<Evidence> evidence{evidence_of(machine, std::string(lockdown_file))};
    if (machine.log())
        if (auto const* const line =
                find_line(*machine.log(), {"Lockdown: ", "direct PCI access is restricted"}))
            evidence.push_back(evidence_of(*line));
    std::string without;
    auto const pfs = connectx_pfs(machine);
    for (auto const* device : pfs) {
        auto const limit = file_of(device->address, "sriov_totalvfs");
        if (auto const hidden = unseen(machine, limit)) return {*hidden};
        if (device->total_vfs().value_or(0) == 0)
            without += (without.empty() ? "" : ", ") + to_string(device->address);
    }
    if (pfs.empty()) return {not_applicable("there is no ConnectX PF")};
    if (auto hidden = unread_so_far(machine)) return {std::move(*hidden)};
    auto const locked = fmt::format("the kernel is locked down ({})", mode);
    if (!without.empty())
        return {warning(
            "",
            fmt::format("{}, so mstconfig and mlxconfig can't reach the NIC (Operation not "
                        "permitted), and {} needs SRIOV_EN=1",
                        locked, without),
            by_hand(
                "enable SR-IOV for the NIC in the firmware's set-up; or boot once with Secure Boot "
                "off and run mstconfig -d ADDRESS set SRIOV_EN=1 NUM_OF_VFS=N; or use devlink's "
                "permanent parameters (enable_sriov, total_vfs) where the kernel has them",
                BlastRadius::reboot),
            evidence)};
    return {ok("",
               locked + ": mstconfig and mlxconfig can't change the NIC's firmware settings; "
                        "SR-IOV is on already, and VFs can be created",
               evidence)};
}

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
        commands.push_back(fmt::format("dkms autoinstall -k {}", machine.release()));
    commands.emplace_back("/etc/init.d/openibd restart");
    return commands;
}

std::vector<Finding> judge_ofed(Machine const& machine) {
    auto const ofed = read_ofed(machine);
    if (!machine.pci()) return {unknown("", machine.pci().error())};
    if (!ofed.running)
        if (auto const hidden = unseen(machine, "/sys/module/mlx5_core/version")) return {*hidden};
    if (own_connectx(machine).empty() && !ofed.installed && !ofed.running)
        return {not_applicable("this machine uses no ConnectX NIC, and has no OFED")};
    bool const loaded = module_loaded(machine, "mlx5_core") || module_loaded(machine, "mlx4_core");
    if (ofed.installed && !ofed.running && loaded)
        return {warning("",
                        fmt::format("OFED {} is installed, but the kernel's own drivers run",
                                    ofed.installed->text),
                        {rebuild_and_restart(machine), BlastRadius::host}, ofed.evidence)};
    if (ofed.installed && ofed.running && !same_ofed(*ofed.installed, *ofed.running))
        return {warning("",
                        fmt::format("OFED {} is installed, but {} runs", ofed.installed->text,
                                    ofed.running->text),
                        {rebuild_and_restart(machine), BlastRadius::host}, ofed.evidence)};
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
    if (connectx_pfs(machine).empty())
        return {nothing_in(machine.pci(), "there is no ConnectX PF")};
    if (!machine.units()) return {unknown("", machine.units().error())};
    auto const* const unit = find_unit(machine, "openibd.service");
    if (!unit || !unit->installed()) return {not_applicable("there is no openibd.service")};
    constexpr auto path = "/usr/lib/systemd/system/openibd.service.d/50-vfmgr.conf";
    if (machine.facts.text(path))
        return {ok("", "openibd.service checks whether VMs have VFs before it stops",
                   {evidence_of(machine, path)})};
    if (auto const hidden = unseen(machine, path)) return {*hidden};
    return {warning(
        "", "a restart of openibd unloads mlx5_core, and removes every VF from its running VM",
        by_hand("install the package vfmgr-cli: its drop-in makes systemd run vfctl drained before "
                "openibd stops; /etc/init.d/openibd bypasses systemd and that check"),
        {{"openibd.service", fmt::format("{}, {}", unit->active, unit->file)},
         absence_evidence(path)})};
}

// MFT's modules come as DKMS sources or prebuilt, for the kernel that ran when it was installed.
std::optional<Finding> mst_of_another_kernel(Machine const& machine) {
    auto const* const unit = find_unit(machine, "mst.service");
    auto const exists = module_exists(machine, "mst_pciconf");
    if (!unit || unit->active != "failed" || !exists || *exists) return std::nullopt;
    if (auto hidden = unread_so_far(machine)) return hidden;
    return warning(
        "",
        fmt::format("mst.service has failed: MST's modules are not built for kernel {}",
                    machine.release()),
        by_hand(fmt::format("dkms autoinstall -k {}, then systemctl restart mst; or do without: "
                            "mlxconfig -d takes a PCI address and needs no MST",
                            machine.release())),
        {{"mst.service", unit->active},
         {fmt::format("/lib/modules/{}/modules.dep", machine.release()), "has no mst_pciconf"}});
}

std::vector<Finding> judge_firmware_tools(Machine const& machine) {
    if (connectx_pfs(machine).empty())
        return {nothing_in(machine.pci(), "there is no ConnectX PF")};
    auto const open_tool = machine.facts.text("/usr/bin/mstconfig");
    auto const mft = machine.facts.text("/usr/bin/mlxconfig");
    bool const started = module_loaded(machine, "mst_pciconf");
    if (open_tool) return {ok("", "mstconfig is installed")};
    if (mft && !started)
        if (auto finding = mst_of_another_kernel(machine)) return {std::move(*finding)};
    if (mft)
        return {ok("", started ? "mlxconfig is installed, and mst is started"
                               : "mlxconfig is installed; mst start creates /dev/mst, which it "
                                 "does not need for a PCI address")};
    for (auto const& tool : {open_tool, mft})
        if (!tool.error().absent()) return {unknown("", tool.error())};
    if (auto hidden = unread_so_far(machine)) return {std::move(*hidden)};
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
    if (contains(settings, "\nRUN_FW_UPDATER_ONBOOT=yes"))
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

constexpr std::array stack{
    Rule{"stack.secure_boot", "Secure Boot accepts the RDMA and GPU modules",
         "UEFI 2.10, 3.3 (SecureBoot); Linux kernel/module/signing.c; dkms(8), mok_certificate; "
         "setup guide, Secure Boot",
         judge_secure_boot},
    Rule{"stack.headers", "Modules can be built for this kernel",
         "Linux Documentation/kbuild/modules.rst; setup guide, DOCA prerequisites", judge_headers},
    Rule{"stack.dkms", "DKMS modules are built for this kernel",
         "dkms(8), the tree in /var/lib/dkms", judge_dkms},
    Rule{"stack.symbols", "Modules match the loaded RDMA stack",
         "Linux kernel/module/version.c; recordings of nvidia_peermem, bluerdma and rdma_rxe",
         judge_symbols},
    Rule{"stack.driver", "Each NIC has its driver, and each ConnectX an RDMA device",
         "Linux drivers/base/dd.c, drivers/infiniband/hw/mlx5, devlink-params.rst (enable_roce); a "
         "recording of an empty /sys/class/infiniband",
         judge_driver},
    Rule{"stack.core", "The RDMA core is loaded",
         "rdma-core kernel-boot; Holoscan guide, Load MOFED drivers; Linux "
         "drivers/infiniband/Kconfig",
         judge_rdma_core},
    Rule{"stack.ofed", "OFED is new enough, and is the stack that runs",
         "Holoscan guide, Install MOFED drivers; ethtool -i recordings of OFED and inbox drivers",
         judge_ofed},
    Rule{"stack.lockdown", "Firmware tools can reach the NIC",
         "kernel_lockdown(7); a recording of mstconfig on a locked-down host", judge_lockdown,
         AppliesTo::host},
    Rule{"stack.mst", "A firmware tool is installed", "mstconfig(1); setup guide, mst start",
         judge_firmware_tools, AppliesTo::host},
    Rule{"stack.openibd", "openibd does not remove VFs that VMs use",
         "MLNX_OFED openibd: restart unloads mlx5_core; systemd.service(5), ExecStop and "
         "ExecCondition",
         judge_openibd, AppliesTo::host},
    Rule{"stack.fw_updater", "Firmware is not changed at boot",
         "MLNX_OFED openib.conf, RUN_FW_UPDATER_ONBOOT; setup guide, mlnx-fw-updater",
         judge_firmware_updater, AppliesTo::host},
};

}  // namespace

constinit std::span<Rule const> const stack_rules = stack;

}  // namespace vfmgr::checks
