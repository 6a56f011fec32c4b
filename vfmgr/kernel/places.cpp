// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/places.hpp"

#include <algorithm>
#include <set>

#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/places.hpp"

namespace vfmgr {
namespace {

constexpr std::chrono::minutes places_last{1};

// VGA, 3D and other display controllers: class 0x03 (PCI Code and ID Assignment Specification).
std::vector<PciAddress> list_gpus(LinuxKernelRoots const& roots) {
    std::vector<PciAddress> gpus;
    for (auto const& name : entries(roots.sysfs / "bus/pci/devices")) {
        auto const address = PciAddress::parse(name);
        if (!address) continue;
        auto const class_code = read_text(pci_folder(roots, *address) / "class");
        if (class_code && class_code->starts_with("0x03")) gpus.push_back(*address);
    }
    return gpus;
}

std::vector<PciPlace> places_of(checks::Machine const& machine,
                                std::vector<PciAddress> const& functions) {
    std::vector<PciPlace> places;
    for (auto const& function : functions)
        if (auto const* const device = checks::find_pci(machine, function))
            places.push_back(checks::place_of(machine, *device));
    return places;
}

void judge_port(HostPlaces& places, checks::Machine const& machine, PciAddress const& port) {
    auto const is = checks::configuration_of(machine, port);
    if (is && is->pcie && is->pcie->kind != checks::PcieKind::downstream_port) return;
    if (!is || !is->shows_extended_capabilities) return places.unread.push_back(port);
    if (is->pcie && is->acs && (is->acs->on & checks::acs_request_redirect) != 0)
        places.redirecting.push_back(port);
}

}  // namespace

HostPlaces read_places(LinuxKernelRoots const& roots) {
    HostPlaces places;
    auto const gpus = list_gpus(roots);
    if (gpus.empty()) return places;
    auto const pfs = list_pfs(roots).value_or(std::vector<PciAddress>{});
    auto all = gpus;
    all.insert(all.end(), pfs.begin(), pfs.end());
    auto const above = roots.sysfs.parent_path();
    auto const facts = checks::collect_places(above == "/" ? std::string() : above.string(), all);
    auto const machine = checks::read_machine(facts);
    places.gpus = places_of(machine, gpus);
    places.pfs = places_of(machine, pfs);
    std::set<PciAddress> ports;
    for (auto const* const those : {&places.gpus, &places.pfs})
        for (auto const& place : *those)
            for (auto const& port : place.above) ports.insert(port.address);
    for (auto const& port : ports) judge_port(places, machine, port);
    return places;
}

HostPlaces PlaceBook::look_up(LinuxKernelRoots const& roots) {
    auto functions = entries(roots.sysfs / "bus/pci/devices");
    auto const now = std::chrono::steady_clock::now();
    std::lock_guard const lock(mutex_);
    if (now < read_again_ && functions == functions_) return places_;
    places_ = read_places(roots);
    functions_ = std::move(functions);
    read_again_ = now + places_last;
    return places_;
}

}  // namespace vfmgr
