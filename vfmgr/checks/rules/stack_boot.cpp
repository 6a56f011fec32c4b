// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "vfmgr/checks/rdma_stack.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/checks/rules/stack.hpp"

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
            return line.text.find(both[0]) != line.text.npos &&
                   line.text.find(both[1]) != line.text.npos;
        });
        auto const name = line.text.substr(0, line.text.find(':'));
        bool const unnamed = name == "Lockdown" || name.size() == line.text.size();
        if (rejects && (unnamed || std::ranges::find(missing, name) != missing.end())) return &line;
    }
    return nullptr;
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
            "\"Enroll MOK\"",
            {}};
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
    auto const* const line = machine.log ? rejection(*machine.log, missing) : nullptr;
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
    if (machine.log)
        if (auto const* const line =
                find_line(*machine.log, {"Lockdown: ", "direct PCI access is restricted"}))
            evidence.push_back(evidence_of(*line));
    std::string without;
    bool any = false;
    for (auto const* device : own_connectx(machine)) {
        if (device->pf) continue;
        any = true;
        auto const limit =
            fmt::format("/sys/bus/pci/devices/{}/sriov_totalvfs", to_string(device->address));
        if (auto const hidden = unseen(machine, limit)) return {*hidden};
        if (device->total_vfs.value_or(0) == 0)
            without += (without.empty() ? "" : ", ") + to_string(device->address);
    }
    if (!any) return {not_applicable("there is no ConnectX PF")};
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

}  // namespace vfmgr::checks
