// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/tenants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace vfmgr {
namespace {

constexpr std::size_t tenants_max = 64;

bool lists(std::vector<std::string> const& names, std::string_view name) {
    return std::ranges::find(names, name) != names.end();
}

// Keeps of the PF what its VFs need, and nothing else.
PfState without_others(PfState const& pf, std::vector<VfState> vfs) {
    PfState own;
    own.info.pci = pf.info.pci;
    own.vfs = std::move(vfs);
    own.stale = pf.stale;
    own.observed_at = pf.observed_at;
    return own;
}

bool is_about_one_vf(Step const& step) {
    return as<AttachHostdev>(step) || as<DetachHostdev>(step) || as<MarkHostdev>(step) ||
           as<ResetVf>(step) || as<AwaitVerification>(step);
}

}  // namespace

bool owns(Tenant const& tenant, std::string_view vm_uuid) {
    return lists(tenant.vms, vm_uuid);
}

Tenant const* tenant_of(Tenants const& tenants, std::string_view vm_uuid) {
    auto const found = std::ranges::find_if(
        tenants, [&](auto const& each) { return owns(each.second.tenant, vm_uuid); });
    return found == tenants.end() ? nullptr : &found->second.tenant;
}

DesiredState seen_by(Tenant const& tenant, DesiredState const& desired) {
    DesiredState own;
    std::set<std::string_view> const vms(tenant.vms.begin(), tenant.vms.end());
    for (auto const& [id, attachment] : desired.attachments)
        if (vms.contains(attachment.vm_uuid)) own.attachments.emplace(id, for_tenants(attachment));
    for (auto const& name : tenant.networks)
        if (auto const found = desired.networks.find(name); found != desired.networks.end())
            own.networks[name] = {for_tenants(found->second.network), found->second.revision};
    for (auto const& name : tenant.pools)
        if (auto const found = desired.pools.find(name); found != desired.pools.end())
            own.pools[name] = {for_tenants(tenant, found->second.pool), found->second.revision};
    for (auto const& [name, reservation] : desired.reservations)
        if (reservation.tenant == tenant.name) own.reservations.emplace(name, reservation);
    return own;
}

HostView seen_by(Tenant const& tenant, HostView const& host, DesiredState const& own) {
    HostView seen;
    seen.kernel.complete = host.kernel.complete;
    seen.hypervisor.stale = host.hypervisor.stale;
    seen.hypervisor.observed_at = host.hypervisor.observed_at;
    for (auto const& uuid : tenant.vms)
        if (auto const vm = host.hypervisor.vms.find(uuid); vm != host.hypervisor.vms.end())
            seen.hypervisor.vms.insert(*vm).first->second.pcie.reset();  // names the host's nodes
    std::map<PciAddress, std::vector<VfState>> vfs;
    for (auto const& [id, attachment] : own.attachments)
        if (auto const* const vf = find_vf(host, attachment.vf))
            vfs[attachment.vf.pf].push_back(*vf);
    for (auto& [pci, of_pf] : vfs) {
        std::ranges::sort(of_pf, {}, &VfState::index);
        seen.kernel.pfs.emplace(pci, without_others(*find_pf(host, pci), std::move(of_pf)));
    }
    return seen;
}

Network for_tenants(Network network) {
    network.pfs.clear();
    return network;
}

Pool for_tenants(Tenant const& tenant, Pool pool) {
    pool.select = {};
    auto& network = pool.defaults.network;
    if (network && !lists(tenant.networks, *network)) network.reset();
    return pool;
}

Attachment for_tenants(Attachment attachment) {
    std::erase_if(attachment.candidates, [](Candidate const& one) { return !one.chosen; });
    if (attachment.verification)
        attachment.verification = for_tenants(std::move(*attachment.verification));
    return attachment;
}

Verification for_tenants(Verification verification) {
    verification.warnings.clear();
    return verification;
}

Plan for_tenants(Plan plan) {
    std::erase_if(plan.steps, [](Step const& step) { return !is_about_one_vf(step); });
    plan.blast_radius.clear();
    plan.notes.clear();
    return plan;
}

Result<Plan> plan_tenant(DesiredState const& desired, Tenant const& tenant) {
    if (!desired.tenants.contains(tenant.name) && desired.tenants.size() >= tenants_max)
        return fail(Problem::limit_exceeded,
                    fmt::format("this host has {} tenants already", tenants_max),
                    "remove one that is no longer used: vfctl tenant list");
    for (auto const& uuid : tenant.vms)
        for (auto const& [name, other] : desired.tenants)
            if (name != tenant.name && owns(other.tenant, uuid))
                return fail(
                    Problem::conflict, fmt::format("VM {} is tenant {}'s", uuid, name),
                    fmt::format("take it from {} first: vfctl tenant set {} -f FILE", name, name));
    Plan plan;
    for (auto const& name : tenant.networks)
        if (!desired.networks.contains(name))
            plan.notes.push_back(fmt::format("there is no network {} yet", name));
    for (auto const& name : tenant.pools)
        if (!desired.pools.contains(name))
            plan.notes.push_back(fmt::format("there is no pool {} yet", name));
    return plan;
}

Result<Plan> plan_tenant_removal(DesiredState const& desired, std::string const& name) {
    if (!desired.tenants.contains(name))
        return fail(Problem::not_found, fmt::format("there is no tenant {}", name),
                    "vfctl tenant list shows those of this host");
    for (auto const& [reserved, reservation] : desired.reservations)
        if (reservation.tenant == name)
            return fail(Problem::conflict,
                        fmt::format("tenant {} has reservation {}", name, reserved),
                        fmt::format("release it first: vfctl reservation release {}", reserved));
    return Plan{};
}

}  // namespace vfmgr
