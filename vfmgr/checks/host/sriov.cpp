// SPDX-License-Identifier: Apache-2.0
// Whether a NIC can have VFs: its firmware's settings, SR-IOV capability, driver, VFs' drivers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "vfmgr/checks/host/rules.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::checks {
namespace {

// The set-up guide's numbers are for its own VMs; ports of a card share the setting.
constexpr int vfs_to_ask_for = 8;

// ConnectX-3 and older: their driver makes VFs when it loads, and only then.
bool is_mlx4(PciDevice const& device) {
    return is_connectx(device) && driver_of_connectx(device) == "mlx4_core";
}

std::string firmware_number(FirmwareConfiguration const& firmware, std::string_view name) {
    auto const* const parameter = firmware.find(name);
    if (!parameter) return {};
    auto const& value = parameter->current ? parameter->current : parameter->next;
    return value ? to_string(*value) : std::string();
}

std::optional<std::uint64_t> after_reset(FirmwareConfiguration const& firmware,
                                         std::string_view name) {
    auto const* const parameter = firmware.find(name);
    return parameter && parameter->next ? parameter->next->number : std::nullopt;
}

// How many VFs each port has: one number for all, or the port's own if it is marked as valid.
FirmwareParameter const* vf_limit(FirmwareConfiguration const& firmware) {
    bool const own = after_reset(firmware, "PF_NUM_OF_VF_VALID") == 1U;
    auto const* const of_port = own ? firmware.find("PF_NUM_OF_VF") : nullptr;
    return of_port ? of_port : firmware.find("NUM_OF_VFS");
}

Remedy set_firmware(Machine const& machine, PciDevice const& card, std::string const& settings) {
    std::string note =
        "mstconfig is in the package mstflint; for some cards, power-cycle the machine";
    if (is_mlx4(card))
        note += "; then make the VFs with mlx4_core's parameter num_vfs, as sriov.capable shows";
    return {{fmt::format("{} -d {} -y set {}", firmware_tool(machine), to_string(card.address),
                         settings),
             "reboot"},
            BlastRadius::reboot,
            std::move(note)};
}

Evidence firmware_evidence(Machine const& machine, PciDevice const& card,
                           FirmwareParameter const& parameter) {
    std::string text = parameter.name;
    if (parameter.by_default) text += " default " + to_string(*parameter.by_default);
    if (parameter.current) text += " current " + to_string(*parameter.current);
    if (parameter.next) text += " next boot " + to_string(*parameter.next);
    return {firmware_query(firmware_tool(machine), card.address), text};
}

// "SR-IOV with 8 VFs for each port, LINK_TYPE_P1 ETH(2)".
std::string firmware_summary(FirmwareConfiguration const& firmware) {
    auto text = fmt::format("SRIOV_EN {}", firmware_number(firmware, "SRIOV_EN"));
    if (auto const* const limit = vf_limit(firmware))
        text += fmt::format(", {} {} for each port", limit->name,
                            firmware_number(firmware, limit->name));
    bool linked = false;
    for (auto const name : {"LINK_TYPE_P1", "LINK_TYPE_P2"}) {
        if (!firmware.find(name)) continue;
        text += fmt::format(", {} {}", name, firmware_number(firmware, name));
        linked = true;
    }
    if (!linked) text += ", Ethernet only";
    if (firmware.find("ATS_ENABLED"))
        text += ", ATS_ENABLED " + firmware_number(firmware, "ATS_ENABLED");
    return text + (firmware.shows_current
                       ? ""
                       : " (after its next reset; the current values are not shown)");
}

bool concerns_vfs(FirmwareParameter const& parameter) {
    constexpr std::array<std::string_view, 6> of_vfs{"SRIOV_EN",     "NUM_OF_VFS",   "PF_NUM_OF_VF",
                                                     "LINK_TYPE_P1", "LINK_TYPE_P2", "ATS_ENABLED"};
    return std::ranges::find(of_vfs, parameter.name) != of_vfs.end();
}

// Puts what concerns VFs first. In the rest, some cards show a difference that no reset removes,
// such as ROCE_CONTROL DEVICE_DEFAULT(0) and ROCE_ENABLE(2).
std::vector<FirmwareParameter const*> pending_in(FirmwareConfiguration const& firmware) {
    std::vector<FirmwareParameter const*> pending;
    for (bool const of_vfs : {true, false})
        for (auto const& parameter : firmware.parameters)
            if (parameter.pending() && concerns_vfs(parameter) == of_vfs)
                pending.push_back(&parameter);
    return pending;
}

std::string joined_pending(std::vector<FirmwareParameter const*> const& pending) {
    constexpr std::size_t named_max = 5;
    std::string text;
    for (std::size_t i = 0; i < std::min(pending.size(), named_max); ++i)
        text += fmt::format("{}{} {}, then {}", i == 0 ? "" : "; ", pending[i]->name,
                            to_string(*pending[i]->current), to_string(*pending[i]->next));
    if (pending.size() > named_max) text += fmt::format("; {} more", pending.size() - named_max);
    return text;
}

// A failure if the card offers no VFs until the reset; if it offers some, it works as before.
Finding waits_for_reset(Machine const& machine, PciDevice const& card,
                        std::vector<FirmwareParameter const*> const& pending,
                        std::string const& what) {
    std::vector<Evidence> evidence;
    for (auto const* parameter : pending)
        evidence.push_back(firmware_evidence(machine, card, *parameter));
    constexpr std::size_t shown_max = 5;
    if (evidence.size() > shown_max) evidence.resize(shown_max);
    Remedy remedy{{"reboot"},
                  BlastRadius::reboot,
                  "if a reboot does not reset the card, power-cycle the machine"};
    auto const report = card.total_vfs().value_or(0) > 0 ? warning : failed;
    return report(to_string(card.address), what, std::move(remedy), std::move(evidence));
}

// A row that was not understood may be the one that keeps the card from having VFs.
Finding partly_read(Machine const& machine, PciDevice const& card,
                    FirmwareConfiguration const& firmware, std::string summary) {
    auto const subject = to_string(card.address);
    auto const& rows = firmware.not_understood;
    if (rows.empty()) return ok(subject, std::move(summary));
    auto const open = std::ranges::find_if(
        rows, [](auto const& row) { return contains(row, "SRIOV") || contains(row, "NUM_OF_VF"); });
    auto const& shown = open == rows.end() ? rows.front() : *open;
    std::vector<Evidence> evidence{{firmware_query(firmware_tool(machine), card.address), shown}};
    summary += fmt::format("; partly read: {} row{} not understood", rows.size(),
                           rows.size() == 1 ? " was" : "s were");
    if (open == rows.end()) return ok(subject, std::move(summary), std::move(evidence));
    return not_known(subject, std::move(summary), std::move(evidence));
}

Finding judge_settings(Machine const& machine, PciDevice const& card,
                       FirmwareConfiguration const& firmware) {
    auto const subject = to_string(card.address);
    auto const enabled = after_reset(firmware, "SRIOV_EN");
    auto const* const limit = vf_limit(firmware);
    auto const count = limit ? after_reset(firmware, limit->name) : std::nullopt;
    bool const has_vfs = card.total_vfs().value_or(0) > 0;
    if (enabled == 0U || count == 0U) {
        auto remedy =
            set_firmware(machine, card,
                         fmt::format("SRIOV_EN=1 {}={}", limit ? limit->name : "NUM_OF_VFS",
                                     count.value_or(0) > 0 ? *count : vfs_to_ask_for));
        std::vector<Evidence> evidence{
            firmware_evidence(machine, card, enabled == 0U ? *firmware.find("SRIOV_EN") : *limit)};
        if (has_vfs)
            return warning(subject, "SR-IOV will be off after the card's next reset",
                           std::move(remedy), std::move(evidence));
        return failed(subject,
                      enabled == 0U ? "SR-IOV is off in the card's firmware"
                                    : "the card's firmware allows 0 VFs",
                      std::move(remedy), std::move(evidence));
    }
    auto const pending = pending_in(firmware);
    if (!pending.empty() && concerns_vfs(*pending.front()))
        return waits_for_reset(
            machine, card, pending,
            fmt::format("settings wait for the card's reset: {}", joined_pending(pending)));
    // A single column is the state after the reset; that the card offers no VFs is the state now.
    auto const* const en = firmware.find("SRIOV_EN");
    if (!firmware.shows_current && en && count && !has_vfs && card.total_vfs.is_read())
        return waits_for_reset(machine, card, {en, limit},
                               fmt::format("{} VFs wait for the card's reset", *count));
    auto summary = firmware_summary(firmware);
    if (!pending.empty())
        summary += fmt::format("; settings unrelated to VFs wait for the card's reset: {}",
                               joined_pending(pending));
    return partly_read(machine, card, firmware, std::move(summary));
}

constexpr std::string_view no_tool =
    "neither mstconfig (in the package mstflint) nor mlxconfig is installed";

std::vector<Finding> judge_firmware(Machine const& machine) {
    std::vector<Finding> findings;
    for (auto const* card : connectx_cards(machine)) {
        auto const subject = to_string(card->address);
        auto const firmware = firmware_of(machine, card->address);
        if (firmware) {
            findings.push_back(judge_settings(machine, *card, *firmware));
            continue;
        }
        auto const complaint = firmware_complaint(machine, card->address);
        auto const total = card->total_vfs().value_or(0);
        // What the kernel found in the card's SR-IOV capability is what its firmware allows now.
        if (firmware.error().absent() && total > 0) {
            findings.push_back(
                ok(subject,
                   fmt::format("SR-IOV is on now, with up to {} VFs; what will change with the "
                               "card's next reset can't be read: {}",
                               total, no_tool),
                   {evidence_of(machine, file_of(card->address, "sriov_totalvfs"))}));
            continue;
        }
        auto finding = unknown(subject, firmware.error());
        if (!complaint.empty())
            finding.detail = fmt::format("{} reported: {}", firmware_tool(machine), complaint);
        else if (firmware.error().absent())
            finding.detail = no_tool;
        auto const lockdown = machine.facts.text("/sys/kernel/security/lockdown").value_or("");
        bool const locked =
            contains(lockdown, "[integrity]") || contains(lockdown, "[confidentiality]");
        if (locked && !complaint.empty())
            finding.detail +=
                "; the kernel is locked down (Secure Boot), which keeps tools away from the card's "
                "registers";
        if (total > 0)
            finding.detail += fmt::format("; SR-IOV is on nevertheless, with up to {} VFs", total);
        findings.push_back(std::move(finding));
    }
    return or_else(std::move(findings), nothing_in(machine.pci(), "there is no ConnectX"));
}

// Judges a ConnectX that offers no VFs, though other NICs may.
Finding judge_without_vfs(Machine const& machine, PciDevice const& nic, bool others_can) {
    auto const subject = to_string(nic.address);
    auto const name = name_of(machine, nic);
    auto const path = file_of(nic.address, "sriov_totalvfs");
    auto const total = machine.facts.text(path);
    if (!total && !total.error().absent()) return unknown(subject, total.error());
    std::vector<Evidence> evidence{nic.total_vfs() ? evidence_of(machine, path)
                                                   : absence_evidence(path)};
    if (kernel_option(machine, "CONFIG_PCI_IOV") == "n")
        return failed(subject, "this kernel was built without SR-IOV (CONFIG_PCI_IOV)",
                      by_hand("boot a kernel that has CONFIG_PCI_IOV", BlastRadius::reboot),
                      {evidence_of(machine, "/boot/config-" + machine.release())});
    if (auto hidden = unread_so_far(machine, to_string(nic.address))) return std::move(*hidden);
    auto card = nic.address;
    card.function = 0;
    auto const firmware = firmware_of(machine, card);
    auto const* const limit = firmware ? vf_limit(*firmware) : nullptr;
    bool const has_limit = limit != nullptr;
    bool const on = has_limit && after_reset(*firmware, "SRIOV_EN") != 0U &&
                    after_reset(*firmware, limit->name) != 0U;
    auto remedy =
        has_limit && !on ? by_hand("follow the remedy of sriov.firmware", BlastRadius::reboot)
        : on ? by_hand("reboot; if that does not help, enable SR-IOV in the firmware's set-up",
                       BlastRadius::reboot)
             : set_firmware(machine, nic, fmt::format("SRIOV_EN=1 NUM_OF_VFS={}", vfs_to_ask_for));
    auto detail = fmt::format("{} can have no VFs", name);
    if (others_can) detail += ", but other NICs of this machine can";
    return (others_can ? warning : failed)(subject, std::move(detail), std::move(remedy),
                                           std::move(evidence));
}

// mlx4_core has no sriov_configure(): sriov_numvfs refuses every number with ENOENT.
Finding judge_mlx4(Machine const& machine, PciDevice const& nic) {
    constexpr auto parameter = "/sys/module/mlx4_core/parameters/num_vfs";
    constexpr auto file = "/etc/modprobe.d/mlx4-vfs.conf";
    auto const subject = to_string(nic.address);
    auto const can = *nic.total_vfs();
    if (!nic.vfs().empty())
        return ok(subject,
                  fmt::format("{} can have {} VFs and has {}, which mlx4_core made when it "
                              "was loaded",
                              name_of(machine, nic), can, nic.vfs().size()));
    auto const set = machine.facts.text(parameter);
    if (auto hidden = unread_so_far(machine, subject)) return std::move(*hidden);
    return warning(
        subject,
        fmt::format("{} can have {} VFs and has none: mlx4_core makes VFs only when it is loaded, "
                    "as many as its parameter num_vfs says",
                    name_of(machine, nic), can),
        {{fmt::format("echo 'options mlx4_core num_vfs={}' > {}",
                      std::min<int>(can, vfs_to_ask_for), file),
          is_debian(machine) ? "update-initramfs -u" : "dracut --force", "reboot"},
         BlastRadius::reboot,
         "num_vfs=A,B,C makes A on port 1, B on port 2 and C on both; vfmgr can't make VFs of this "
         "card, and uses those that are there"},
        {{parameter, set ? std::string(*set) : "does not exist"}});
}

Finding judge_nic(Machine const& machine, PciDevice const& nic, bool others_can) {
    auto const subject = to_string(nic.address);
    if (nic.total_vfs().value_or(0) == 0) return judge_without_vfs(machine, nic, others_can);
    if (on_vfio(nic)) {
        auto finding = not_applicable("is attached as a whole, so it has no VFs");
        finding.subject = subject;
        return finding;
    }
    auto const path = file_of(nic.address, "sriov_totalvfs");
    if (nic.driver() && is_mlx4(nic)) return judge_mlx4(machine, nic);
    if (nic.driver() || !is_connectx(nic))
        return ok(subject,
                  fmt::format("{} can have {} VFs and has {}", name_of(machine, nic),
                              *nic.total_vfs(), nic.vfs().size()),
                  {evidence_of(machine, path)});
    auto const link = file_of(nic.address, "driver");
    if (auto const hidden = unseen(machine, link, subject)) return *hidden;
    auto const driver = driver_of_connectx(nic);
    return failed(subject, "has no driver to create its VFs (ENOENT from sriov_numvfs)",
                  module_loaded(machine, driver)
                      ? by_hand("follow the remedy of stack.driver, which shows why")
                      : by_command(fmt::format("modprobe {}", driver)),
                  {absence_evidence(link)});
}

std::vector<Finding> judge_capable(Machine const& machine) {
    auto const nics = sriov_nics(machine);
    bool const others_can = std::ranges::any_of(nics, [](auto const* nic) {
        return is_connectx(*nic) && nic->total_vfs().value_or(0) > 0;
    });
    std::vector<Finding> findings;
    for (auto const* nic : nics)
        if (is_connectx(*nic) || nic->total_vfs().value_or(0) > 0)
            findings.push_back(judge_nic(machine, *nic, others_can));
    return or_else(std::move(findings), nothing_in(machine.pci(), "no NIC here has SR-IOV"));
}

// Drivers that attach a VF to a program in other ways than VFIO.
bool is_other_owner_driver(std::string_view driver) {
    constexpr std::array<std::string_view, 5> all{"uio_pci_generic", "igb_uio", "pci-stub",
                                                  "pciback", "xen-pciback"};
    return std::ranges::find(all, driver) != all.end();
}

std::vector<Finding> judge_vf_driver(Machine const& machine) {
    if (!machine.pci()) return {unknown("", machine.pci().error())};
    std::vector<Finding> findings;
    std::map<std::string, int> counts;
    for (auto const& vf : *machine.pci()) {
        if (!vf.pf() || !is_network(vf)) continue;
        ++counts[vf.driver().value_or("no driver")];
        auto const path = file_of(vf.address, "driver");
        auto const bound = vf.driver().value_or("");
        if (is_other_owner_driver(bound))
            findings.push_back(
                warning(to_string(vf.address),
                        fmt::format("is bound to {}: a program other than libvirt uses it", bound),
                        by_command(fmt::format("echo {} > {}/unbind", to_string(vf.address), path),
                                   "run it once the program that uses the VF has ended"),
                        {{path, bound}}));
    }
    if (counts.empty()) return {not_applicable("there are no VFs")};
    if (!findings.empty()) return findings;
    std::string text;
    for (auto const& [driver, count] : counts)
        text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", count,
                            driver == "no driver" ? "have" : "on", driver);
    return {ok("", "VFs: " + text)};
}

constexpr std::array sriov_group{
    Rule{"sriov.firmware", "The card's firmware allows VFs",
         "set-up guide, Enable SR-IOV on Mellanox Adapter; mstflint, mlxconfig_table",
         judge_firmware, AppliesTo::host},
    Rule{"sriov.capable", "The NIC can have VFs",
         "Linux drivers/pci/iov.c, sriov_totalvfs, and mlx4/main.c, num_vfs; set-up guide, SR-IOV "
         "VFs Not Created",
         judge_capable, AppliesTo::host},
    Rule{"sriov.resources", "The machine has room for the VFs",
         "Linux drivers/pci/iov.c and setup-res.c; messages of mlx5_core", judge_sriov_resources,
         AppliesTo::host},
    Rule{"sriov.vf_driver", "VFs are bound to drivers that can attach them",
         "Linux Documentation/driver-api/vfio.rst; set-up guide, Unbind VFs for VM Assignment",
         judge_vf_driver, AppliesTo::host},
    Rule{
        "sriov.owner", "No other program owns the VFs",
        "systemd.link(5), systemd.network(5), nm-settings(5), netplan(5), modinfo of mlx4_core and "
        "ixgbe; sriov-network-operator, pkg/systemd and pkg/host/store; libvirt, formatnetwork; "
        "neutron, SR-IOV agent; nova, [pci]",
        judge_sriov_owner, AppliesTo::host},
};

}  // namespace

constinit std::span<Rule const> const sriov_rules = sriov_group;

}  // namespace vfmgr::checks
