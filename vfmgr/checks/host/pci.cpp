// SPDX-License-Identifier: Apache-2.0
// PCI Express around attached devices: ports that keep them apart, links that are slower than the
// card.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "vfmgr/checks/host/rules.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"

namespace vfmgr::checks {
namespace {

// Without these a port passes requests of one device below it to another, or accepts a forged
// sender. Completion redirection is not required: for some ports the kernel leaves it off.
constexpr std::uint16_t isolating =
    acs_source_validation | acs_request_redirect | acs_upstream_forwarding;
constexpr std::uint16_t all_isolating = isolating | acs_completion_redirect;

bool is_passed_through(PciDevice const& device) {
    return (device.pf() && is_network(device)) ||
           (on_vfio(device) && (is_network(device) || is_nvidia_gpu(device)));
}

std::set<PciAddress> ports_above_passed_through(Machine const& machine) {
    std::set<PciAddress> ports;
    for (auto const& device : *machine.pci())
        if (is_passed_through(device)) ports.insert(device.above().begin(), device.above().end());
    return ports;
}

std::string passed_through_below(Machine const& machine, PciAddress const& port) {
    std::string names;
    std::size_t count = 0;
    constexpr std::size_t named_max = 3;
    for (auto const& device : *machine.pci()) {
        if (!is_passed_through(device) ||
            std::ranges::find(device.above(), port) == device.above().end())
            continue;
        if (++count <= named_max) names += (names.empty() ? "" : ", ") + to_string(device.address);
    }
    return names + (count > named_max ? ", …" : "");
}

Evidence acs_evidence(PciAddress const& port, AcsCapability const& acs) {
    return {file_of(port, "config"), "ACSCtl " + describe_acs(acs.on)};
}

std::optional<Finding> judge_port(Machine const& machine, PciAddress const& port,
                                  PciConfiguration const& configuration) {
    bool const separates =
        configuration.pcie && (configuration.pcie->kind == PcieKind::root_port ||
                               configuration.pcie->kind == PcieKind::downstream_port);
    // A capability that the port lacks merges IOMMU groups, which iommu.groups judges.
    if (!separates || !configuration.acs) return std::nullopt;
    auto const& acs = *configuration.acs;
    if ((isolating & acs.able & ~acs.on) == 0) return std::nullopt;
    auto const mask = static_cast<std::uint16_t>(all_isolating & acs.able);
    return failed(
        to_string(port),
        fmt::format("this port, above {}, lets devices reach each other past the IOMMU, whatever "
                    "their IOMMU groups show: its ACS is off, though the kernel turns it on",
                    passed_through_below(machine, port)),
        by_command(fmt::format("setpci -s {} ECAP_ACS+6.w={:x}:{:x}", to_string(port), mask, mask),
                   "also remove what switches ACS off at boot (setpci or pci=disable_acs_redir=): "
                   "a recipe for GPUDirect without VMs, and unsafe with them"),
        {acs_evidence(port, acs)});
}

// Two devices whose common switch could pass their traffic on its own.
bool share_switch(Machine const& machine, PciDevice const& one, PciDevice const& other) {
    return std::ranges::any_of(one.above(), [&](PciAddress const& port) {
        if (std::ranges::find(other.above(), port) == other.above().end()) return false;
        auto const configuration = configuration_of(machine, port);
        return configuration && configuration->pcie &&
               configuration->pcie->kind == PcieKind::upstream_port;
    });
}

// GPUs that are made for computing are 3D controllers; GeForce cards are VGA controllers.
bool is_compute_gpu(PciDevice const& device) {
    return is_nvidia_gpu(device) && device.class_code() >> 8U == 0x0302;
}

// A VM's NIC and GPU behind one switch: with address translation by the NIC (ATS) the switch passes
// their traffic itself; without it, traffic goes through the root complex
// (guest-tools/gpu/GPUDIRECT.md#acs-and-ats).
std::optional<Finding> judge_translated(Machine const& machine, PciDevice const& nic,
                                        PciDevice const& gpu) {
    if (nic.above().empty() || !share_switch(machine, nic, gpu)) return std::nullopt;
    auto const port = nic.above().back();
    auto const of_nic = configuration_of(machine, nic.address);
    auto const of_port = configuration_of(machine, port);
    if (!of_nic || !of_port || !of_nic->shows_extended_capabilities) return std::nullopt;
    auto const what = fmt::format(
        "GPUDirect between {} and GPU {} in a VM goes through the root "
        "complex, not through their switch",
        name_of(machine, nic), to_string(gpu.address));
    if (!of_nic->ats)
        return warning(to_string(nic.address), what + ": the NIC offers no ATS",
                       {{fmt::format("{} -d {} -y set ATS_ENABLED=1", firmware_tool(machine),
                                     to_string(nic.address)),
                         "reboot"},
                        BlastRadius::reboot,
                        "ACS stays on: with ATS the switch passes only translated requests "
                        "directly, and all others go to the IOMMU"},
                       {{file_of(nic.address, "config"), "has no ATS capability"}});
    auto const mask = static_cast<std::uint16_t>(all_isolating | acs_direct_translated);
    if (!of_port->acs || (of_port->acs->on & mask) == mask) return std::nullopt;
    return warning(
        to_string(nic.address), what + ": its port passes no translated requests directly",
        by_command(fmt::format("setpci -s {} ECAP_ACS+6.w={:x}:{:x}", to_string(port), mask, mask),
                   "repeat it at each boot, in Linux 6.11 and later with pci=config_acs=; it "
                   "leaves the isolation as it is"),
        {acs_evidence(port, *of_port->acs)});
}

std::vector<Finding> judge_gpudirect(Machine const& machine) {
    std::vector<Finding> findings;
    for (auto const* nic : sriov_nics(machine))
        for (auto const& gpu : *machine.pci())
            if (is_compute_gpu(gpu) && on_vfio(gpu) && (!nic->vfs().empty() || on_vfio(*nic)))
                if (auto finding = judge_translated(machine, *nic, gpu))
                    findings.push_back(std::move(*finding));
    return findings;
}

// --- GPUDirect of the host itself: the opposite recipe, which removes the isolation ---

// True if nothing shows that a device is, or is about to be, attached to a VM. If something can't
// be read, one may be.
bool passes_nothing_through(Machine const& machine) {
    if (!machine.units() || !machine.modules()) return false;
    auto const attaches = [](PciDevice const& one) {
        return one.pf() || !one.vfs().empty() || on_vfio(one);
    };
    if (std::ranges::any_of(*machine.pci(), attaches)) return false;
    for (auto const* module : {"vfio_pci", "mlx5_vfio_pci", "vfio"})
        if (machine.modules()->contains(module)) return false;
    return std::ranges::none_of(*machine.units(), [](auto const& unit) {
        bool const of_vms = unit.first.starts_with("libvirtd.") ||
                            unit.first.starts_with("virtqemud.") ||
                            unit.first.starts_with("vfmgrd.");
        return of_vms && unit.second.load == "loaded";
    });
}

bool is_own_nic(PciDevice const& device) {
    return is_network(device) && !device.pf() && !on_vfio(device) &&
           (is_connectx(device) || !device.rdma_devices().empty());
}

// Switch ports that send traffic between the two devices to the root complex first.
struct Detour {
    PciDevice const* nic;
    PciDevice const* gpu;
    PciAddress port;
    AcsCapability acs;
};

std::vector<Detour> detours_of_host(Machine const& machine) {
    std::vector<Detour> detours;
    std::set<PciAddress> named;
    for (auto const& nic : *machine.pci())
        for (auto const& gpu : *machine.pci()) {
            if (!is_own_nic(nic) || !is_compute_gpu(gpu) || gpu.driver() != "nvidia") continue;
            if (nic.above().empty() || gpu.above().empty() || !share_switch(machine, nic, gpu))
                continue;
            for (auto const& port : {nic.above().back(), gpu.above().back()}) {
                auto const is = configuration_of(machine, port);
                bool const separates =
                    is && is->pcie && is->pcie->kind == PcieKind::downstream_port && is->acs;
                if (separates && (is->acs->on & acs_request_redirect) != 0 &&
                    named.insert(port).second)
                    detours.push_back({&nic, &gpu, port, *is->acs});
            }
        }
    return detours;
}

std::string detour_sentence(Machine const& machine, Detour const& one) {
    return fmt::format(
        "GPUDirect of the host itself between {} and GPU {} goes through the root complex, not "
        "through their switch",
        name_of(machine, *one.nic), to_string(one.gpu->address));
}

// Names what would speed up the host's own GPUDirect, but is unsafe with VMs.
std::string about_host_gpus(Machine const& machine) {
    auto const detours = detours_of_host(machine);
    if (detours.empty()) return {};
    return fmt::format(
        "; {}. Leave ACS on: without it that would be faster, but unsafe where devices are "
        "attached to VMs. A VM gets the direct path through the NIC's ATS",
        detour_sentence(machine, detours.front()));
}

// Bare metal: there are no VMs to isolate from each other.
std::vector<Finding> judge_bare_metal(Machine const& machine) {
    std::vector<Finding> findings;
    for (auto const& one : detours_of_host(machine)) {
        auto const mask = static_cast<std::uint16_t>(all_isolating & one.acs.able);
        findings.push_back(warning(
            to_string(one.port),
            detour_sentence(machine, one) + ": this port's ACS redirects requests",
            Remedy{{fmt::format("setpci -s {} ECAP_ACS+6.w=0:{:x}", to_string(one.port), mask)},
                   BlastRadius::host,
                   "do it only while this machine attaches no device to a VM, where ACS must never "
                   "be off, and with iommu=pt; repeat it after each boot"},
            {acs_evidence(one.port, one.acs)}));
    }
    return findings;
}

std::vector<Finding> nothing_passed_through(Machine const& machine, bool without_iommu) {
    if (passes_nothing_through(machine))
        if (auto findings = judge_bare_metal(machine); !findings.empty()) return findings;
    if (without_iommu) return {not_applicable("the IOMMU is off")};
    return {not_applicable("no device is attached below a port" + about_host_gpus(machine))};
}

std::vector<Finding> judge_acs(Machine const& machine) {
    if (!machine.pci()) return {unknown("", machine.pci().error())};
    auto const groups = machine.facts.names("/sys/kernel/iommu_groups");
    auto const ports = ports_above_passed_through(machine);
    if (!groups && groups.error().error != 0) return {unknown("", groups.error())};
    bool const without_iommu = groups && groups->empty();
    if (ports.empty()) return nothing_passed_through(machine, without_iommu);
    if (without_iommu) return {not_applicable("the IOMMU is off")};
    std::vector<Finding> findings;
    std::optional<Unknown> hidden;
    for (auto const& port : ports) {
        auto const configuration = configuration_of(machine, port);
        if (!configuration)
            hidden = configuration.error();
        else if (!configuration->shows_extended_capabilities)
            hidden = Unknown{file_of(port, "config"), EPERM};
        else if (auto finding = judge_port(machine, port, *configuration))
            findings.push_back(std::move(*finding));
    }
    for (auto& finding : judge_gpudirect(machine)) findings.push_back(std::move(finding));
    if (hidden) findings.push_back(unknown("", *hidden));
    return or_else(
        std::move(findings),
        ok("", fmt::format(
                   "ports above attached devices send their requests to the IOMMU, {} checked{}",
                   ports.size(), about_host_gpus(machine))));
}

// --- links ---

// Computes the data rate of lanes as the kernel does [src drivers/pci/pci.h, PCIE_SPEED2MBS_ENC].
double gbps_of(double gts, int lanes) {
    constexpr double old = 5.0, newest = 64.0;
    double const coding = gts <= old ? 0.8 : gts < newest ? 128.0 / 130.0 : 1.0;
    return gts * coding * lanes;
}

// The sum of a card's two ports, where they report a speed: they share the link.
std::optional<double> port_gbps(Machine const& machine, PciDevice const& card) {
    if (!machine.netdevs()) return std::nullopt;
    double sum = 0;
    for (auto const& netdev : *machine.netdevs()) {
        if (!netdev.pci() || !netdev.speed_mbps() || contains(netdev.phys_port_name(), "vf"))
            continue;
        auto const* const device = find_pci(machine, *netdev.pci());
        if (share_slot(*netdev.pci(), card.address) && device && !is_vf(*device))
            sum = std::max(sum, 0.0) + *netdev.speed_mbps() / 1000.0;
    }
    return sum > 0 ? std::optional(sum) : std::nullopt;
}

// mlx5 and other drivers report at boot if the path to the card is narrower than the card.
LogLine const* limited_line(Machine const& machine, PciDevice const& card) {
    if (!machine.log()) return nullptr;
    auto const address = to_string(card.address) + ": ";
    return find_line(*machine.log(), {address, "available PCIe bandwidth, limited by"});
}

Finding judge_link(Machine const& machine, PciDevice const& card) {
    auto const subject = to_string(card.address);
    auto const now = gbps_of(*card.speed_gts(), *card.width());
    auto const best = gbps_of(*card.speed_gts_max(), *card.width_max());
    auto const is = fmt::format("{} GT/s x{}, {:.0f} Gb/s", *card.speed_gts(), *card.width(), now);
    auto const* const line = limited_line(machine, card);
    bool const full =
        *card.width() >= *card.width_max() && *card.speed_gts() >= *card.speed_gts_max();
    if (full && !line)
        return ok(subject, fmt::format("its link runs at the card's maximum: {}", is));
    auto const text =
        full ? fmt::format("the path to {} is narrower than its link, {}", name_of(machine, card),
                           is)
             : fmt::format(
                   "the link of {} runs at {}, but the card supports {} GT/s x{}, {:.0f} Gb/s",
                   name_of(machine, card), is, *card.speed_gts_max(), *card.width_max(), best);
    auto const needed = port_gbps(machine, card);
    if (!full && needed && *needed <= now)
        return ok(subject,
                  fmt::format("{}; enough for the {:.0f} Gb/s of its ports", text, *needed));
    if (!full && !needed && !is_connectx(card)) return ok(subject, text + "; its ports are down");
    if (auto hidden = unread_so_far(machine, subject)) return std::move(*hidden);
    std::vector<Evidence> evidence;
    if (!full)
        evidence = {evidence_of(machine, file_of(card.address, "current_link_speed")),
                    evidence_of(machine, file_of(card.address, "current_link_width"))};
    if (line) evidence.push_back(evidence_of(*line));
    return warning(subject, text,
                   by_hand("reseat the card, or move it to a slot with as many lanes of its "
                           "generation; the firmware's set-up may limit the slot's speed",
                           BlastRadius::reboot),
                   std::move(evidence));
}

// Judges only NICs whose VFs are attached: idle GPUs slow their links down, and on-board devices
// have the link that was intended.
std::vector<Finding> judge_links(Machine const& machine) {
    std::vector<Finding> findings;
    std::set<PciAddress> known_cards;
    for (auto const* card : sriov_nics(machine)) {
        bool const is_known =
            card->speed_gts() && card->speed_gts_max() && card->width() && card->width_max();
        // An emulated link has no lanes; a card's first function stands for all.
        if (!is_known || *card->width() <= 0 || *card->width_max() <= 0) continue;
        auto slot = card->address;
        slot.function = 0;
        if (known_cards.insert(slot).second) findings.push_back(judge_link(machine, *card));
    }
    return or_else(std::move(findings),
                   nothing_in(machine.pci(), "no NIC with SR-IOV reports its link"));
}

constexpr std::array pci_group{
    Rule{"pci.acs", "PCIe ports isolate attached devices",
         "PCI Express, Access Control Services; Linux drivers/pci/pci.c, pci_std_enable_acs; "
         "rdma-core, rdma_topo",
         judge_acs, AppliesTo::host},
    Rule{"pci.link", "NICs have a fast enough PCIe link",
         "Linux drivers/pci/pci.c, __pcie_print_link_status", judge_links, AppliesTo::host,
         RestsOn::all_devices},
};

}  // namespace

constinit std::span<Rule const> const pci_rules = pci_group;

}  // namespace vfmgr::checks
