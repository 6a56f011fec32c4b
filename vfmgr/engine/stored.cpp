// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/stored.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/engine/revision.hpp"
#include "vfmgr/engine/tenants.hpp"
#include "vfmgr/plan/select.hpp"

namespace vfmgr {
namespace {

// Only its holder changes a reservation: another client may have chosen the same name. All clients
// of a tenant are one holder.
Result<void> check_holder(Reservation const& reservation, Intent const& intent) {
    bool const same = reservation.tenant ? reservation.tenant == intent.tenant
                                         : reservation.requested_by == intent.requested_by;
    if (same) return {};
    return fail(Problem::conflict,
                fmt::format("reservation {} is {}'s", reservation.name, reservation.requested_by),
                "choose another name; it ends when it expires, or when its holder releases it");
}

}  // namespace

Result<Stored> Storing::operator()(PutNetwork const& command) const {
    auto const& network = command.network;
    auto const& networks = state.desired().networks;
    VFMGR_CHECK(check_revision(networks, network.name, intent.if_match));
    Stored stored;
    VFMGR_TRY(stored.plan, plan_network(host, state.desired(), network));
    stored.revision = revision_of(networks, network.name);
    auto const* const before = find_network(networks, network.name);
    if (before && *before == network) return stored;
    stored.batch.emplace();
    stored.batch->save_networks.push_back({network, state.next_revision()});
    return stored;
}

Result<Stored> Storing::operator()(RemoveNetwork const& command) const {
    VFMGR_CHECK(check_revision(state.desired().networks, command.name, intent.if_match));
    Stored stored;
    VFMGR_TRY(stored.plan, plan_network_removal(state.desired(), command.name));
    stored.batch.emplace();
    stored.batch->erase_networks.push_back(command.name);
    return stored;
}

Result<Stored> Storing::operator()(PutPool const& command) const {
    auto const& pool = command.pool;
    auto const& pools = state.desired().pools;
    VFMGR_CHECK(check_revision(pools, pool.name, intent.if_match));
    Stored stored;
    VFMGR_TRY(stored.plan, plan_pool(state.desired(), pool));
    stored.revision = revision_of(pools, pool.name);
    auto const before = pools.find(pool.name);
    if (before != pools.end() && before->second.pool == pool) return stored;
    stored.batch.emplace();
    stored.batch->save_pools.push_back({pool, state.next_revision()});
    return stored;
}

Result<Stored> Storing::operator()(RemovePool const& command) const {
    VFMGR_CHECK(check_revision(state.desired().pools, command.name, intent.if_match));
    Stored stored;
    VFMGR_TRY(stored.plan, plan_pool_removal(state.desired(), command.name));
    stored.batch.emplace();
    stored.batch->erase_pools.push_back(command.name);
    return stored;
}

Result<Stored> Storing::operator()(PutTenant const& command) const {
    auto const& tenant = command.tenant;
    auto const& tenants = state.desired().tenants;
    VFMGR_CHECK(check_revision(tenants, tenant.name, intent.if_match));
    Stored stored;
    VFMGR_TRY(stored.plan, plan_tenant(state.desired(), tenant));
    stored.revision = revision_of(tenants, tenant.name);
    auto const before = tenants.find(tenant.name);
    if (before != tenants.end() && before->second.tenant == tenant) return stored;
    stored.batch.emplace();
    stored.batch->save_tenants.push_back({tenant, state.next_revision()});
    return stored;
}

// A token would be valid again with a tenant that gets the same name later.
Result<Stored> Storing::operator()(RemoveTenant const& command) const {
    VFMGR_CHECK(check_revision(state.desired().tenants, command.name, intent.if_match));
    Stored stored;
    VFMGR_TRY(stored.plan, plan_tenant_removal(state.desired(), command.name));
    for (auto const& [sha256, token] : state.tokens())
        if (token.tenant == command.name)
            return fail(Problem::conflict,
                        fmt::format("tenant {} has token {}", command.name, token.id),
                        "revoke it first: vfctl token revoke " + token.id);
    stored.batch.emplace();
    stored.batch->erase_tenants.push_back(command.name);
    return stored;
}

// What was handed out from ranges before stays where it is.
Result<Stored> Storing::operator()(PutIdentities const& command) const {
    auto const& before = state.desired().handed_out;
    VFMGR_CHECK(check_revision(before.revision, "the host's identities", intent.if_match));
    Stored stored{{}, before.revision};
    if (before.identities == command.identities) return stored;
    stored.batch.emplace();
    stored.batch->save_handed_out = {command.identities, state.next_revision()};
    return stored;
}

// The same name again keeps other VFs, for another time.
Result<Stored> Storing::operator()(Reserve const& command) const {
    auto const& reservations = state.desired().reservations;
    auto const before = reservations.find(command.name);
    if (before != reservations.end()) VFMGR_CHECK(check_holder(before->second, intent));
    std::string const named_for(tenant_in(command.name));
    if (named_for != intent.tenant && state.desired().tenants.contains(named_for))
        return fail(Problem::conflict,
                    fmt::format("reservations named {}-… are tenant {}'s", named_for, named_for),
                    "choose another name");
    VFMGR_TRY(auto vfs, vfs_to_reserve(host, state.desired(), command.name, command.spec,
                                       intent.requested_by));
    Stored stored;
    for (auto const& vf : vfs)
        stored.plan.notes.push_back(fmt::format("VF {} is reserved", to_string(vf)));
    stored.batch.emplace();
    stored.batch->save_reservations.push_back({command.name, command.spec, std::move(vfs),
                                               intent.requested_by, now,
                                               now + std::chrono::seconds(command.spec.seconds)});
    if (!intent.tenant.empty()) stored.batch->save_reservations.back().tenant = intent.tenant;
    return stored;
}

Result<Stored> Storing::operator()(Release const& command) const {
    auto const& reservations = state.desired().reservations;
    if (!reservations.contains(command.name)) return fail(no_reservation(command.name));
    Stored stored;
    stored.batch.emplace();
    stored.batch->erase_reservations.push_back(command.name);
    return stored;
}

void tidy_reservations(Control::State& state, Time now) {
    Batch batch;
    for (auto [name, reservation] : state.desired().reservations) {
        auto const kept = reservation.vfs.size();
        std::erase_if(reservation.vfs,
                      [&](VfId const& vf) { return is_attached(state.desired(), vf); });
        if (reservation.expires_at <= now || reservation.vfs.empty())
            batch.erase_reservations.push_back(name);
        else if (reservation.vfs.size() != kept)
            batch.save_reservations.push_back(std::move(reservation));
    }
    if (batch != Batch{}) static_cast<void>(state.commit(std::move(batch)).has_value());
}

}  // namespace vfmgr
