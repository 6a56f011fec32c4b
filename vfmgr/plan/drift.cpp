// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/drift.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/pf_standing.hpp"
#include "vfmgr/plan/plan.hpp"
#include "vfmgr/plan/vf_values.hpp"

namespace vfmgr {
namespace {

constexpr auto hostdev = "hostdev";
constexpr auto device = "device";

bool runs(VmInfo const& vm) {
    return vm.state == VmState::running || vm.state == VmState::paused;
}

std::string driver_name(std::optional<std::string> const& driver) {
    return driver ? fmt::format("bound to {}", *driver) : "unbound";
}

// A sentence about a lease's VF begins with it.
struct Lent {
    Attachment const& lease;
    std::vector<Drift>& into;

    void tell(std::string what, std::string found, std::string const& is) const {
        auto const& [pf, index] = lease.vf;
        into.push_back({pf, index, std::move(what), std::move(found),
                        fmt::format("VF {}, lent to VM {}, {}", index, lease.vm_name, is), lease.id,
                        lease.vm_name});
    }
};

// Of one member, as in "vlan 100 qos 0 802.1q".
std::string said(VfSpec const& settings, VfAttribute attribute) {
    return settings_sentence(only(settings, attribute));
}

void compare_settings(Lent const& lent, VfState const& vf) {
    auto const different = drifted_settings(lent.lease, vf);
    for_each_member([&](VfAttribute attribute, auto member) {
        if (!(different.*member)) return;
        auto const found = said(vf.settings, attribute);
        lent.tell(std::string(enum_name(attribute)), found,
                  fmt::format("has {}, and {} is wanted", found, said(different, attribute)));
    });
}

// The host's part of what leases need: the PF up, addresses, peers, an RDMA link.
void compare_links(DesiredPf const& wanted, PfState const& pf,
                   std::vector<Attachment> const& leases, std::vector<Drift>& into) {
    if (!wanted.base || leases.empty()) return;
    auto const links = wanted_links(pf.info.pci, wanted.spec, *wanted.base, leases);
    for (auto const& step : links_up(pf, links, *wanted.base)) {
        auto const lacks = sentence(step);
        into.push_back({pf.info.pci,
                        {},
                        lacks,
                        "absent",
                        fmt::format("{} is not as its leases need it; still to do: {}",
                                    display_name(pf.info), lacks),
                        {},
                        {}});
    }
}

// Reports listeners on each network with an attachment. It never ends anybody's program.
void compare_listeners(DesiredPf const& wanted, PfState const& pf,
                       std::vector<Attachment> const& leases, std::vector<Drift>& into) {
    for (auto const& network : wanted.spec.networks) {
        auto const used = std::ranges::find_if(
            leases, [&](Attachment const& lease) { return lease.spec.network == network.name; });
        if (used == leases.end()) continue;
        for (auto const& each : reached_listeners(pf, wanted.spec, network))
            into.push_back({pf.info.pci,
                            {},
                            fmt::format("rdma listener {} {}", network.name, each.port),
                            each.comm,
                            fmt::format("{}, where VMs on network {} reach it: stop it, or have it "
                                        "listen elsewhere",
                                        sentence(each, pf.info), network.name),
                            {},
                            {}});
    }
}

// Who looks too early sees it in the XML still: QEMU lets go of it first, or the kernel does.
bool is_lost(MissingHostdev const& missing, bool gone, Attachment const& lease, VmInfo const& vm) {
    return missing.live || (gone && lease.live && runs(vm));
}

void compare_lease(Attachment const& lease, PfState const& pf, HostView const& host,
                   std::vector<Drift>& into) {
    Lent const lent{lease, into};
    auto const vf = std::ranges::find(pf.vfs, lease.vf.index, &VfState::index);
    bool const gone = vf == pf.vfs.end();
    auto const* const vm = host.hypervisor.stale ? nullptr : find_vm(host, lease.vm_uuid);
    auto const missing = vm ? missing_hostdev(lease, *vm) : MissingHostdev{};
    if (vm && is_lost(missing, gone, lease, *vm))
        lent.tell(hostdev, "absent",
                  gone ? "is gone from that VM, which runs" : "is not in that VM, which runs");
    else if (gone)
        lent.tell("presence", "absent", "is gone");
    if (missing.config)
        lent.tell("persistent hostdev", "absent", "is not in the persistent XML of that VM");
    if (gone) return;
    if (vf->pci != lease.vf_pci)
        lent.tell(
            "presence", to_string(vf->pci),
            fmt::format("is at {}, and was at {}", to_string(vf->pci), to_string(lease.vf_pci)));
    if (vf->driver != lease.driver)
        lent.tell("driver", driver_name(vf->driver),
                  fmt::format("is {}, and {} is wanted", driver_name(vf->driver), lease.driver));
    compare_settings(lent, *vf);
}

void compare_pf(DesiredPf const& wanted, PfState const& pf, HostView const& host,
                DesiredState const& desired, std::vector<Drift>& into) {
    auto const& spec = wanted.spec;
    auto const& pci = pf.info.pci;
    if (spec.num_vfs && *spec.num_vfs != pf.vfs.size())
        into.push_back({pci,
                        {},
                        "num_vfs",
                        fmt::format("{}", pf.vfs.size()),
                        fmt::format("{} has {} VFs, and {} are wanted", display_name(pf.info),
                                    pf.vfs.size(), *spec.num_vfs),
                        {},
                        {}});
    auto const leases = attached_leases(desired, pci);
    compare_links(wanted, pf, leases, into);
    compare_listeners(wanted, pf, leases, into);
    for (auto const& lease : leases) compare_lease(lease, pf, host, into);
    auto const unbound = bind_unused(host, desired, pf, spec);
    for (auto const index : unbound ? unbound->vfs : std::vector<std::uint16_t>()) {
        auto const found = driver_name(find_vf(host, VfId{pci, index})->driver);
        into.push_back({pci,
                        index,
                        "driver",
                        found,
                        fmt::format("VF {} is {}, and {} is wanted", index, found, *spec.vf_driver),
                        {},
                        {}});
    }
}

std::string told(Error const& wrong) {
    return fmt::format("{}: {}", wrong.detail, wrong.remedy);
}

void compare_there(PfStanding const& standing, DesiredPf const& wanted, PfState const& pf,
                   HostView const& host, DesiredState const& desired, std::vector<Drift>& into) {
    auto const& pci = pf.info.pci;
    if (standing.is == Standing::driver_unbound)
        into.push_back({pci,
                        {},
                        "driver",
                        driver_name({}),
                        told(standing_trouble(standing, pci).value_or(Error{})),
                        {},
                        {}});
    compare_pf(wanted, pf, host, desired, into);
}

}  // namespace

std::string key_of(Drift const& drift) {
    return fmt::format("{}/{}/{}", to_string(drift.pf),
                       drift.vf ? fmt::format("{}", *drift.vf) : "-", drift.what);
}

std::string told_with_owners(Drift const& drift, std::vector<std::string> const& owners) {
    constexpr std::ptrdiff_t owners_told_max = 3;
    if (owners.empty()) return drift.sentence;
    auto const told = std::min(std::ssize(owners), owners_told_max);
    auto all = fmt::format("{}; {}", drift.sentence,
                           fmt::join(owners.begin(), owners.begin() + told, "; "));
    if (told < std::ssize(owners))
        all += fmt::format("; and {} others, which vfctl doctor names", std::ssize(owners) - told);
    return all;
}

VfSpec drifted_settings(Attachment const& lease, VfState const& vf) {
    auto different = differing(lease.settings, vf.settings);
    auto const& may_differ = lease.spec.best_effort;
    for_each_member([&](VfAttribute attribute, auto member) {
        if (!(vf.settings.*member) ||
            std::ranges::find(may_differ, enum_name(attribute)) != may_differ.end())
            (different.*member).reset();
    });
    return different;
}

MissingHostdev missing_hostdev(Attachment const& lease, VmInfo const& vm) {
    auto const alias = hostdev_alias(lease.id);
    return {lease.live && runs(vm) && !has_hostdev(vm.live, alias, lease.vf_pci),
            lease.config && vm.persistent && !has_hostdev(vm.config, alias, lease.vf_pci)};
}

std::vector<Attachment> gone_live(HostView const& host, DesiredState const& desired) {
    std::vector<Attachment> gone;
    for (auto const& [id, lease] : desired.attachments) {
        if (lease.live || lease.state != AttachmentState::attached) continue;
        auto const* const vm = find_vm(host, lease.vm_uuid);
        if (!vm || !has_hostdev(vm->live, hostdev_alias(id), lease.vf_pci)) continue;
        gone.push_back(lease);
        gone.back().live = true;
    }
    return gone;
}

bool is_loss(Drift const& drift) {
    return drift.what == hostdev;
}

bool is_managed(DesiredPf const& wanted) {
    return wanted.spec.mode != PfMode::observe;
}

bool can_be_judged(PfState const* pf) {
    return pf && !pf->stale && !pf->stuck;
}

bool can_be_judged(HostView const& host, DesiredState const& desired, PciAddress const& pf) {
    return can_be_judged(find_pf(host, pf)) ||
           wrong_standing(standing_of(host.kernel, desired, pf), pf);
}

std::vector<Drift> find_drift(HostView const& host, DesiredState const& desired) {
    std::vector<Drift> all;
    for (auto const& [pci, wanted] : desired.pfs) {
        if (!is_managed(wanted)) continue;
        auto const standing = standing_of(host.kernel, desired, pci);
        // Of another device nothing is wanted.
        if (auto const wrong = wrong_standing(standing, pci))
            all.push_back(
                {pci, {}, device, std::string(code(wrong->problem)), told(*wrong), {}, {}});
        else if (auto const* const pf = find_pf(host, pci); can_be_judged(pf))
            compare_there(standing, wanted, *pf, host, desired, all);
    }
    return all;
}

}  // namespace vfmgr
