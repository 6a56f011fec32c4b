// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "vfmgr/plan/tenants.hpp"

namespace vfmgr {
namespace {

// Events whose sentence is about the attachment, the VM or the object that they name. Those of
// failures and of drift may quote whatever was in the way.
constexpr std::array plain_kinds{
    EventKind::operation_accepted,
    EventKind::attaching,
    EventKind::attached,
    EventKind::attachment_changed,
    EventKind::verified,
    EventKind::detaching,
    EventKind::detached,
    EventKind::network_changed,
    EventKind::network_removed,
    EventKind::partition_changed,
    EventKind::pool_changed,
    EventKind::pool_removed,
    EventKind::reservation_made,
    EventKind::reservation_released,
    EventKind::reservation_expired,
    EventKind::vm_appeared,
    EventKind::vm_started,
    EventKind::vm_stopped,
    EventKind::vm_disappeared,
    EventKind::declaration_refused,
};

bool are_listed(std::vector<std::string> const& names, std::optional<std::string> const& name) {
    return name && std::ranges::find(names, *name) != names.end();
}

bool is_about(Tenant const& tenant, Event const& event) {
    if (event.vm_uuid) return owns(tenant, *event.vm_uuid);
    if (event.reservation) return tenant_in(*event.reservation) == tenant.name;
    // What its readers list again: they miss what the host did before.
    if (event.kind == EventKind::vfmgrd_started) return true;
    return are_listed(tenant.networks, event.network) || are_listed(tenant.pools, event.pool);
}

}  // namespace

std::optional<Event> seen_by(Tenant const& tenant, Event const& event) {
    if (!is_about(tenant, event)) return std::nullopt;
    auto seen = event;
    if (std::ranges::find(plain_kinds, event.kind) == plain_kinds.end()) seen.detail.clear();
    return seen;
}

}  // namespace vfmgr
