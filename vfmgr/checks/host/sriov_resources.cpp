// SPDX-License-Identifier: Apache-2.0
// What the kernel could not provide for VFs: room for their memory, bus numbers, an answer.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "vfmgr/checks/host/rules.hpp"
#include "vfmgr/checks/rules/log.hpp"
#include "vfmgr/machine/driver_log.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"

namespace vfmgr::checks {
namespace {

// A failure that a write to sriov_numvfs reports as ENOMEM or EIO, and the log explains.
struct Shortage {
    std::string_view words, and_words;  // of a line about the PF
    std::string_view detail;
    std::string_view note;
    std::string_view parameter;  // of the kernel, may help
};
constexpr std::string_view room_note =
    "enable Above 4G Decoding and SR-IOV in the firmware's set-up";
constexpr Shortage of_bus_numbers(std::string_view words, std::string_view and_words) {
    return {words, and_words, "there are no bus numbers for the VFs behind their port (ENOMEM)",
            "alternatively, move the NIC to another slot, or request fewer VFs",
            "pci=assign-busses"};
}
constexpr std::array shortages{
    Shortage{"not enough MMIO resources for SR-IOV", "",
             "there is no room in the address space for the VFs' memory (ENOMEM)", room_note,
             "pci=realloc"},
    of_bus_numbers("bus number out of range", "SR-IOV"),
    of_bus_numbers("can't enable", "out of range of [bus"),  // since Linux 4.5
    Shortage{"pci_enable_sriov failed : -5", "",
             "the first VF did not answer when it was created (EIO)",
             "enable ARI in the firmware's set-up, and update the card's firmware", ""},
};

constexpr std::string_view not_enabled = "ENABLE_HCA(0x104) timeout";
constexpr std::string_view no_group = "Failed to add to iommu group";

// Lines about a function have its address, as "0000:3b:00.0: " or "0000:3b:00.0 ens1: ".
bool is_about(LogLine const& line, std::string const& address) {
    auto const at = line.text.find(address);
    if (at == line.text.npos) return false;
    auto const behind = line.text.substr(at + address.size());
    return behind.starts_with(':') || behind.starts_with(' ');
}

LogLine const* last_about(Machine const& machine, std::string const& address,
                          std::string_view words, std::string_view and_words = {}) {
    return last_line(machine, [&](LogLine const& line) {
        return contains(line.text, words) && contains(line.text, and_words) &&
               is_about(line, address);
    });
}

// "VF BAR 0 [mem …]: can't assign; no space", or before Linux 6.9 "BAR 7: no space for [mem …]":
// VFs' BARs are 7 to 12. The kernel tries again, so the last line about a BAR counts.
std::optional<std::string> vf_bar_in(std::string_view text) {
    constexpr std::string_view named = "VF BAR ", numbered = ": BAR ";
    if (auto const at = text.find(named); at != text.npos)
        return std::string(text.substr(at, named.size() + 1));
    auto const at = text.find(numbered);
    if (at == text.npos) return std::nullopt;
    auto const number = text.substr(at + numbered.size(), 2);
    constexpr std::array<std::string_view, 6> of_vfs{"7:", "8:", "9:", "10", "11", "12"};
    if (std::ranges::find(of_vfs, number) == of_vfs.end()) return std::nullopt;
    return std::string(text.substr(at + 2, numbered.size()));
}

LogLine const* unassigned_vf_bar(KernelLog const& log, std::string const& address) {
    std::map<std::string, LogLine const*> open;
    for (auto const& line : log.lines) {
        auto const bar = is_about(line, address) ? vf_bar_in(line.text) : std::nullopt;
        if (!bar) continue;
        bool const failed_to =
            contains(line.text, "no space") || contains(line.text, "failed to assign");
        bool const done = contains(line.text, "assigned");
        if (failed_to) open.try_emplace(*bar, &line);
        if (!failed_to && done) open.erase(*bar);
    }
    return open.empty() ? nullptr : open.begin()->second;
}

Remedy more_room(Machine const& machine, Shortage const& shortage) {
    if (shortage.parameter.empty()) return by_hand(std::string(shortage.note), BlastRadius::reboot);
    auto remedy = by_kernel_parameter(machine, std::string(shortage.parameter));
    remedy.note = remedy.note.empty() ? std::string(shortage.note)
                                      : fmt::format("{}; {}", shortage.note, remedy.note);
    return remedy;
}

// Judges a PF that has no VFs: if it has VFs, there was room for them.
std::optional<Finding> shortage_of(Machine const& machine, PciDevice const& pf) {
    auto const address = to_string(pf.address);
    for (auto const& shortage : shortages)
        if (auto const* line = last_about(machine, address, shortage.words, shortage.and_words))
            return failed(address, std::string(shortage.detail), more_room(machine, shortage),
                          {evidence_of(*line)});
    if (auto const* line = unassigned_vf_bar(*machine.log(), address))
        return failed(address, "there is no room in the address space for the VFs' memory (ENOMEM)",
                      more_room(machine, shortages[0]), {evidence_of(*line)});
    return std::nullopt;
}

// Why an existing VF is unusable; nullopt if it works.
struct DeadVf {
    std::string why;
    Evidence evidence;
};
std::optional<DeadVf> why_dead(Machine const& machine, PciDevice const& vf, bool groups) {
    constexpr std::uint8_t ones = 0xff;
    auto const address = to_string(vf.address);
    auto const folder = "/sys/bus/pci/devices/" + address;
    auto const configuration = configuration_of(machine, vf.address);
    if (vf.revision() == ones) return DeadVf{"does not answer", {folder + "/revision", "0xff"}};
    if (configuration && !configuration->answers)
        return DeadVf{"does not answer", {folder + "/config", "all ones"}};
    bool const in_use = vf.driver() && !on_vfio(vf);
    if (auto const* line = last_about(machine, address, not_enabled); line && !in_use)
        return DeadVf{"was not enabled by the card (ENABLE_HCA timed out)", evidence_of(*line)};
    if (!groups || vf.iommu_group() || unseen(machine, folder + "/iommu_group"))
        return std::nullopt;
    auto const* const line = last_about(machine, address, no_group);
    return DeadVf{"has no IOMMU group, so it can't be attached",
                  line ? evidence_of(*line) : absence_evidence(folder + "/iommu_group")};
}

// A port without ARI reaches eight functions of a device: further VFs take other bus numbers.
std::string about_ari(Machine const& machine, PciDevice const& pf) {
    if (pf.above().empty()) return {};
    auto const port = configuration_of(machine, pf.above().back());
    if (!port || !port->pcie || port->pcie->forwards_ari) return {};
    return fmt::format(
        "; the port above, {}, does not forward ARI, so it reaches only the first VFs",
        to_string(pf.above().back()));
}

std::optional<Finding> dead_vfs_of(Machine const& machine, PciDevice const& pf, bool groups) {
    std::string names, why;
    std::vector<Evidence> evidence;
    std::size_t count = 0;
    constexpr std::size_t named_max = 4;
    for (auto const& [index, address] : pf.vfs()) {
        auto const* const vf = find_pci(machine, address);
        auto const found = vf ? why_dead(machine, *vf, groups) : std::nullopt;
        if (!found) continue;
        if (++count <= named_max) names += (names.empty() ? "" : ", ") + to_string(address);
        if (why.empty()) why = found->why;
        if (evidence.size() < named_max) evidence.push_back(found->evidence);
    }
    if (count == 0) return std::nullopt;
    if (count > named_max) names += ", …";
    return failed(
        to_string(pf.address),
        fmt::format("{} of its {} VFs can't be used: {} {}{}", count, pf.vfs().size(), names, why,
                    about_ari(machine, pf)),
        by_hand("remove all its VFs and create them again; if that does not help, enable ARI and "
                "SR-IOV in the firmware's set-up, update the card's firmware, or create fewer VFs",
                BlastRadius::host),
        std::move(evidence));
}

// VFs that failed and are gone: whoever made them has given up, and only the log is left.
std::vector<Finding> gone_vfs(Machine const& machine) {
    std::map<PciAddress, LogLine const*> last;
    for (auto const& line : machine.log()->lines) {
        bool const failed = contains(line.text, not_enabled) || contains(line.text, no_group);
        if (!failed && !contains(line.text, "Adding to iommu group")) continue;
        auto const& said = line.by_device;
        if (!said || find_pci(machine, said->device)) continue;
        if (failed)
            last.insert_or_assign(said->device, &line);
        else
            last.erase(said->device);
    }
    std::vector<Finding> findings;
    for (auto const& [device, line] : last) {
        bool const group = contains(line->text, no_group);
        findings.push_back(warning(
            to_string(device),
            fmt::format("{}: {}",
                        machine.pci() ? "is gone, and could not be used while it was there"
                                      : "could not be used",
                        group ? "it got no IOMMU group"
                              : "the card did not enable it (ENABLE_HCA timed out)"),
            by_hand("before VFs are made again: enable ARI and SR-IOV in the firmware's set-up, "
                    "update the card's firmware, or make fewer VFs",
                    BlastRadius::reboot),
            {evidence_of(*line)}));
    }
    return findings;
}

}  // namespace

std::vector<Finding> judge_sriov_resources(Machine const& machine) {
    if (!machine.pci() && machine.log()) {
        auto findings = judge_logged_nics(machine, [&](PciDevice const& nic) {
            auto shortage = shortage_of(machine, nic);
            if (!shortage) return std::vector<Finding>();
            // It may have VFs by now.
            shortage->result = CheckResult::warning;
            shortage->detail = "when VFs were last requested: " + shortage->detail;
            return std::vector{std::move(*shortage)};
        });
        for (auto& gone : gone_vfs(machine)) findings.push_back(std::move(gone));
        return findings;
    }
    auto const iommu = machine.facts.names("/sys/kernel/iommu_groups");
    bool const groups = iommu && !iommu->empty();
    std::vector<Finding> findings;
    std::size_t pfs = 0;
    for (auto const* pf : sriov_nics(machine)) {
        if (pf->total_vfs().value_or(0) == 0) continue;
        ++pfs;
        auto finding = dead_vfs_of(machine, *pf, groups);
        if (!finding && pf->vfs().empty() && machine.log()) finding = shortage_of(machine, *pf);
        if (finding) findings.push_back(std::move(*finding));
    }
    if (pfs == 0) return {nothing_in(machine.pci(), "no NIC here has SR-IOV")};
    if (machine.log())
        for (auto& gone : gone_vfs(machine)) findings.push_back(std::move(gone));
    if (!findings.empty()) return findings;
    if (!machine.log()) return {unknown("", machine.log().error())};
    return {ok("", fmt::format("none of {} known complaints about room for VFs in {}",
                               shortages.size(), lines_read(*machine.log())))};
}

}  // namespace vfmgr::checks
