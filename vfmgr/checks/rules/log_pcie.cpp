// SPDX-License-Identifier: Apache-2.0
// What the kernel's log says of the PCIe links of NICs: errors of AER, containment by DPC, links
// and cards that went away (pciehp). All are printed by the ports above a NIC, some name the NIC.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "vfmgr/checks/rules/log.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"

namespace vfmgr::checks {
namespace {

enum class PcieEvent { gone, fatal, uncorrected, corrected };

// drivers/pci/pcie/{aer,dpc,err}.c, drivers/pci/hotplug/pciehp_ctrl.c, drivers/pci/pci.c. Kernels
// before 5.1 print "Uncorrected (Non-Fatal)" as this one does; older forms say "AER:" twice.
std::optional<PcieEvent> event_of(std::string_view text) {
    if (contains(text, "Slot(") &&
        (contains(text, ": Link Down") || contains(text, "Card not present")) &&
        !contains(text, "ignored"))
        return PcieEvent::gone;
    if (contains(text, "device inaccessible") || contains(text, "type=Inaccessible"))
        return PcieEvent::gone;
    // What drivers print about the same: mlx5/core/health.c, ixgbe_main.c. No firmware has a
    // version of all ones.
    if (contains(text, "PCI reads still not working") || contains(text, "fw_ver 0xffffffff") ||
        contains(text, "fw_ver 65535.65535.") || text == "Adapter removed")
        return PcieEvent::gone;
    if (contains(text, "device recovery failed") || contains(text, "containment event"))
        return PcieEvent::fatal;
    if (contains(text, "severity=Uncorrected (Fatal)") ||
        contains(text, "Uncorrected (Fatal) error received"))
        return PcieEvent::fatal;
    if (contains(text, "severity=Uncorrected (Non-Fatal)") ||
        contains(text, "Uncorrected (Non-Fatal) error received"))
        return PcieEvent::uncorrected;
    if (contains(text, "severity=Corrected") || contains(text, "severity=Correctable"))
        return PcieEvent::corrected;
    return std::nullopt;
}

constexpr int corrected_many = 10;

std::string words_of(PcieEvent event) {
    switch (event) {
        case PcieEvent::gone:
            return "its PCIe link went down";
        case PcieEvent::fatal:
            return "its PCIe link had a fatal error";
        case PcieEvent::uncorrected:
            return "requests over its PCIe link failed";
        case PcieEvent::corrected:
            break;
    }
    return "its PCIe link corrects errors again and again";
}

constexpr auto reseat =
    "power the machine off, seat the NIC and its riser again, and try another slot: the NIC, the "
    "slot or what is between them is bad";

using Events = std::map<PcieEvent, Complaint>;  // the worst first

// "AER: Uncorrected (Fatal) error received: 0000:17:00.0", as a port prints it.
std::optional<PciAddress> source_in(std::string_view text) {
    constexpr std::string_view received = " error received: ";
    auto const at = text.find(received);
    if (at == text.npos) return std::nullopt;
    auto const source = PciAddress::parse(text.substr(at + received.size()));
    return source ? std::optional(*source) : std::nullopt;
}

std::map<PciAddress, Events> events_by_device(KernelLog const& log) {
    std::map<PciAddress, Events> all;
    for (auto const& line : log.lines) {
        auto const& of = line.by_device;
        auto const event = of ? event_of(of->text) : std::nullopt;
        if (event) all[of->device][*event].add(line);
    }
    return all;
}

// Joins those of a NIC and of the ports above it.
Events events_of(PciDevice const& nic, std::map<PciAddress, Events> const& by_device) {
    auto devices = nic.above();
    devices.push_back(nic.address);
    Events all;
    for (auto const& device : devices)
        if (auto const found = by_device.find(device); found != by_device.end())
            for (auto const& [event, complaint] : found->second) all[event].add(complaint);
    return all;
}

Finding judge_link(Machine const& machine, PciDevice const& nic, Events const& events) {
    auto const subject = to_string(nic.address);
    if (events.empty())
        return ok(subject,
                  fmt::format(
                      "no known message of AER, DPC or hot-plug about it or a port above it in {}",
                      lines_read(*machine.log())));
    auto const& [event, complaint] = *events.begin();
    std::vector<Evidence> const evidence{evidence_of(*complaint.line)};
    auto const detail = words_of(event) + counted(complaint);
    if (event == PcieEvent::corrected && complaint.lines < corrected_many)
        return ok(
            subject,
            fmt::format("its PCIe link corrected {} errors, which costs nothing", complaint.lines),
            evidence);
    bool const lost = event == PcieEvent::gone || event == PcieEvent::fatal;
    auto const judge = lost ? failed : warning;
    return judge(subject, detail, by_hand(reseat, lost ? BlastRadius::reboot : BlastRadius::none),
                 evidence);
}

}  // namespace

namespace {

// A card that fell off the bus is no device any more: only the log has its name. The port that lost
// it has nothing below it now.
std::optional<Finding> judge_missing(Machine const& machine, PciDevice const& nic,
                                     std::map<PciAddress, Events> const& by_device) {
    auto events = events_of(nic, by_device);
    for (auto const& [port, of_port] : by_device) {
        bool const has_some = std::ranges::any_of(*machine.pci(), [&](PciDevice const& device) {
            return std::ranges::find(device.above(), port) != device.above().end();
        });
        auto const gone = of_port.find(PcieEvent::gone);
        if (!has_some && gone != of_port.end()) events[PcieEvent::gone].add(gone->second);
    }
    if (!events.contains(PcieEvent::gone)) return std::nullopt;
    auto finding = judge_link(machine, nic, events);
    finding.detail += ", and it is no longer there";
    return finding;
}

}  // namespace

bool is_judged_by_pcie_rule(DeviceLine const& line) {
    // Further lines of AER say what an event's line said, in numbers.
    return event_of(line.text) || line.text.starts_with("AER: ") ||
           contains(line.text, "error status/mask=");
}

std::vector<Finding> judge_pcie_ports(Machine const& machine) {
    if (!machine.log()) return {unknown("", machine.log().error())};
    auto by_device = events_by_device(*machine.log());
    if (!machine.pci()) {
        // Nobody knows which ports are above a NIC, but a port says whose error it received.
        for (auto const& line : machine.log()->lines) {
            auto const source = source_in(line.text);
            if (auto const event = source ? event_of(line.text) : std::nullopt)
                by_device[*source][*event].add(line);
        }
        return judge_logged_nics(machine, [&](PciDevice const& nic) {
            return std::vector{judge_link(machine, nic, events_of(nic, by_device))};
        });
    }
    std::vector<Finding> findings;
    for (auto const* const nic : functions_of(machine, is_network)) {
        if (is_vf(*nic)) continue;  // it has no link of its own
        findings.push_back(judge_link(machine, *nic, events_of(*nic, by_device)));
    }
    for (auto const& nic : logged_nics(*machine.log())) {
        // VFs come and go with sriov_numvfs.
        if (find_pci(machine, nic.address) || is_vf(nic)) continue;
        if (auto missing = judge_missing(machine, nic, by_device))
            findings.push_back(std::move(*missing));
    }
    return or_else(std::move(findings), nothing_in(machine.pci(), "there is no NIC"));
}

}  // namespace vfmgr::checks
