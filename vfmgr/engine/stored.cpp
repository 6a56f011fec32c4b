// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/stored.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/engine/revision.hpp"
#include "vfmgr/engine/tenants.hpp"
#include "vfmgr/plan/fleet_identities.hpp"
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

// What was handed out from ranges before stays where it is; of a fleet's it is not taken away.
Result<Stored> Storing::operator()(PutIdentities const& command) const {
    auto const& before = state.desired().handed_out;
    VFMGR_CHECK(check_revision(before.revision, "the host's identities", intent.if_match));
    Stored stored{{}, before.revision};
    if (before.identities == command.identities) return stored;
    VFMGR_CHECK(check_identities(state.desired(), command.identities, state.pledged()));
    stored.batch.emplace();
    stored.batch->save_handed_out = {command.identities, state.next_revision()};
    return stored;
}

// Whoever joins it again learns of another name, other URLs or another CA.
Result<Stored> Storing::operator()(JoinFleet const& command) const {
    auto membership = command.membership;
    auto const& before = state.desired().fleet;
    if (before && before->fleet != membership.fleet)
        return fail(Problem::conflict,
                    fmt::format("this host is a member of fleet {} already", before->fleet),
                    "leave that first: vfctl fleet leave");
    membership.joined_at = before ? before->joined_at : now;
    membership.contacted_at.reset();
    membership.fence = before ? before->fence : 0;
    Stored stored;
    stored.plan.notes.push_back(
        fmt::format("this host is {} in fleet {}, whose replicas may then "
                    "do here what an admin may",
                    membership.host, membership.fleet));
    if (before == membership) return stored;
    stored.batch.emplace().save_fleet = std::move(membership);
    return stored;
}

// What is attached stays, and so do the ranges, which may be in use: the host goes on with them.
// Identities of a generation end also where no membership goes with them.
Result<Stored> Storing::operator()(LeaveFleet const&) const {
    auto const& fleet = state.desired().fleet;
    auto const& handed_out = state.desired().handed_out;
    auto own = without_fleet(handed_out.identities);
    if (!fleet && own == handed_out.identities)
        return fail(Problem::not_found, "this host is in no fleet", "no action is needed");
    Stored stored;
    stored.plan.notes.push_back(
        fmt::format("this host leaves {}; attachments and ranges of identities stay",
                    fleet_name(state.desired())));
    auto& batch = stored.batch.emplace();
    batch.erase_fleet = fleet.has_value();
    if (own != handed_out.identities)
        batch.save_handed_out = {std::move(own), state.next_revision()};
    return stored;
}

Result<Stored> Storing::operator()(ConfirmRestored const&) const {
    Stored stored;
    auto const& restored_at = state.desired().restored_at;
    if (!restored_at) return stored;
    stored.plan.notes.push_back(
        fmt::format("the store that was restored at {} is confirmed", to_rfc3339(*restored_at)));
    stored.batch.emplace().confirm_restored = true;
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
