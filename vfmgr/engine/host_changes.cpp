// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/host_changes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/plan/pf_standing.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

constexpr unsigned link_changes_max = 10;
constexpr auto link_window = 60s;

HostFacts::Pf facts_of(KernelView const& host, DesiredState const& desired, PciAddress const& pci,
                       HostFacts::Pf known) {
    auto const standing = standing_of(host, desired, pci);
    if (standing.is != Standing::unknown) {
        known.is = standing.is;
        auto const wrong = standing_trouble(standing, pci);
        known.trouble = wrong ? wrong->detail : "";
    }
    auto const found = host.pfs.find(pci);
    if (found == host.pfs.end()) {
        if (known.name.empty()) known.name = to_string(pci);
        return known;
    }
    auto const& pf = found->second;
    known.stuck = pf.stuck;
    known.pci_busy = pf.pci_busy;
    if (known.name.empty() || !pf.stale) known.name = display_name(pf.info);
    if (pf.stale) return known;
    known.carrier = pf.info.carrier;
    known.num_vfs = pf.info.num_vfs;
    return known;
}

// Collects events about one PF or VM.
struct Report {
    std::vector<Event>& events;
    Event about;

    void add(EventKind kind, std::string detail) {
        about.kind = kind;
        about.detail = std::move(detail);
        events.push_back(about);
    }
};

void add_standing(Report& report, HostFacts::Pf const& before, HostFacts::Pf const& after) {
    if (after.is == before.is) return;
    auto const& name = after.name;
    switch (after.is) {
        case Standing::here:
            return report.add(EventKind::pf_here, fmt::format("PF {} is here", name));
        case Standing::driver_unbound:
            return report.add(EventKind::pf_unbound, after.trouble);
        case Standing::renumbered:
            return report.add(EventKind::pf_renumbered, after.trouble);
        case Standing::gone:
            return report.add(EventKind::pf_gone, after.trouble);
        case Standing::unknown:
            return;
    }
}

void add_pf(Report& report, HostFacts::Pf const& before, HostFacts::Pf const& after) {
    auto const& name = after.name;
    add_standing(report, before, after);
    if (after.stuck && !before.stuck)
        report.add(EventKind::pf_stuck, fmt::format("PF {} is stuck: {}", name, *after.stuck));
    if (before.stuck && !after.stuck)
        report.add(EventKind::pf_answers, fmt::format("PF {} is no longer stuck", name));
    if (after.pci_busy && !before.pci_busy)
        report.add(EventKind::pci_busy,
                   fmt::format("PF {} keeps every PF from making and removing VFs", name));
    if (before.pci_busy && !after.pci_busy)
        report.add(EventKind::pci_free,
                   fmt::format("PF {} no longer keeps others from making and removing VFs", name));
    if (before.carrier && after.carrier != before.carrier)
        report.add(*after.carrier ? EventKind::link_up : EventKind::link_down,
                   fmt::format("the link of PF {} is {}", name, *after.carrier ? "up" : "down"));
    if (before.num_vfs && after.num_vfs != before.num_vfs)
        report.add(EventKind::num_vfs_changed, fmt::format("PF {} has {} VFs; it had {}", name,
                                                           *after.num_vfs, *before.num_vfs));
}

// A PF that nothing is stored of leaves the facts when it is unplugged.
bool was_there(HostFacts::Pf const& pf) {
    return pf.is == Standing::here || pf.is == Standing::driver_unbound;
}

void add_pfs(std::vector<Event>& events, HostFacts const& before, HostFacts const& after) {
    for (auto const& [pci, pf] : after.pfs) {
        Report report{events, {}};
        report.about.pf = pci;
        auto const known = before.pfs.find(pci);
        add_pf(report, known == before.pfs.end() ? HostFacts::Pf{} : known->second, pf);
    }
    for (auto const& [pci, pf] : before.pfs) {
        if (after.pfs.contains(pci) || !was_there(pf)) continue;
        Report report{events, {}};
        report.about.pf = pci;
        report.add(EventKind::pf_gone, fmt::format("PF {} is not on this host", pf.name));
    }
}

Report about_vm(std::vector<Event>& events, std::string const& uuid, HostFacts::Vm const& vm) {
    Report report{events, {}};
    report.about.vm = vm.name;
    report.about.vm_uuid = uuid;
    return report;
}

void add_vms(std::vector<Event>& events, HostFacts::Vms const& before,
             HostFacts::Vms const& after) {
    for (auto const& [uuid, vm] : before) {
        auto report = about_vm(events, uuid, vm);
        auto const now = after.find(uuid);
        bool const is_gone = now == after.end();
        if (vm.start_id && (is_gone || now->second.start_id != vm.start_id))
            report.add(EventKind::vm_stopped, fmt::format("VM {} stopped", vm.name));
        if (is_gone)
            report.add(EventKind::vm_disappeared,
                       fmt::format("libvirt no longer knows VM {}", vm.name));
    }
    for (auto const& [uuid, vm] : after) {
        auto report = about_vm(events, uuid, vm);
        auto const known = before.find(uuid);
        bool const is_new = known == before.end();
        if (is_new) report.add(EventKind::vm_appeared, fmt::format("libvirt knows VM {}", vm.name));
        if (vm.start_id && (is_new || known->second.start_id != vm.start_id))
            report.add(EventKind::vm_started, fmt::format("VM {} started", vm.name));
    }
}

// Each step of an operation observes VMs, and there may be many: what is known is not copied.
std::shared_ptr<HostFacts::Vms const> vms_of(HypervisorView const& view,
                                             std::shared_ptr<HostFacts::Vms const> const& known) {
    auto const same = [](auto const& fact, auto const& vm) {
        return fact.first == vm.first && fact.second.name == vm.second.name &&
               fact.second.start_id == vm.second.start_id;
    };
    if (known && std::ranges::equal(*known, view.vms, same)) return known;
    HostFacts::Vms vms;
    for (auto const& [uuid, vm] : view.vms) vms.emplace(uuid, HostFacts::Vm{vm.name, vm.start_id});
    return std::make_shared<HostFacts::Vms const>(std::move(vms));
}

void add_libvirt(std::vector<Event>& events, HostFacts const& before, HostFacts const& after) {
    Report report{events, {}};
    if (after.libvirt_lost && !before.libvirt_lost)
        report.add(EventKind::libvirt_lost,
                   fmt::format("libvirt can't be queried: {}", *after.libvirt_lost));
    if (before.libvirt_lost && !after.libvirt_lost)
        report.add(EventKind::libvirt_found, "libvirt can be queried again");
}

}  // namespace

std::optional<HostFacts> facts_of(HostView const& host, DesiredState const& desired,
                                  std::optional<HostFacts> const& before) {
    auto const& hypervisor = host.hypervisor;
    if (!host.kernel.complete || (hypervisor.observed_at == Time{} && !hypervisor.stale))
        return std::nullopt;
    HostFacts facts;
    auto const known_of = [&](PciAddress const& pci) {
        if (!before || !before->pfs.contains(pci)) return HostFacts::Pf{};
        return before->pfs.at(pci);
    };
    auto addresses = kept_pfs(desired);
    for (auto const& [pci, pf] : host.kernel.pfs) addresses.push_back(pci);
    for (auto const& pci : addresses)
        if (!facts.pfs.contains(pci))
            facts.pfs.emplace(pci, facts_of(host.kernel, desired, pci, known_of(pci)));
    auto const known_vms = before ? before->vms : nullptr;
    facts.vms = hypervisor.stale ? known_vms : vms_of(hypervisor, known_vms);
    if (hypervisor.stale) facts.libvirt_lost = hypervisor.stale_reason;
    return facts;
}

std::vector<Event> changes(std::optional<HostFacts> const& before, HostFacts const& after,
                           Time now) {
    std::vector<Event> events;
    if (!before) {
        Report{events, {}}.add(EventKind::vfmgrd_started,
                               "vfmgrd observes this host; what changed on it while vfmgrd did "
                               "not run has no events");
    } else if (!(*before == after)) {
        add_pfs(events, *before, after);
        add_libvirt(events, *before, after);
        if (before->vms && after.vms) add_vms(events, *before->vms, *after.vms);
    }
    for (auto& event : events) event.at = now;
    return events;
}

void LinkFlaps::damp(HostFacts const& before, HostFacts& after, Deadline now) {
    std::erase_if(minutes_, [&](auto const& entry) { return entry.second.until <= now; });
    for (auto& [pci, pf] : after.pfs) {
        auto const known = before.pfs.find(pci);
        if (known == before.pfs.end() || known->second.carrier == pf.carrier) continue;
        auto& minute = minutes_[pci];
        if (minute.changes == 0) minute.until = now + link_window;
        if (minute.changes == link_changes_max)
            pf.carrier = known->second.carrier;
        else
            ++minute.changes;
    }
}

}  // namespace vfmgr
