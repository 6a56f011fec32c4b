// SPDX-License-Identifier: Apache-2.0
// What a tenant sees of a host: its own things, and of what it shares with others only what it
// needs. What answers a tenant is made from these views alone, so it can name nothing else, and a
// thing of another tenant is answered like one that does not exist. Pure.
#pragma once

#include <optional>
#include <string_view>

#include "api/types/event.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

[[nodiscard]] bool owns(Tenant const& tenant, std::string_view vm_uuid);
// Returns the tenant that has the VM; nullptr: none has. Points into `tenants`.
[[nodiscard]] Tenant const* tenant_of(Tenants const& tenants, std::string_view vm_uuid);

// Its attachments, networks, pools and reservations. Networks have no addresses of the host, and
// pools no selectors.
[[nodiscard]] DesiredState seen_by(Tenant const& tenant, DesiredState const& desired);
// Its VMs, and the VFs of its attachments. `own` is what it sees of the desired state.
[[nodiscard]] HostView seen_by(Tenant const& tenant, HostView const& host, DesiredState const& own);
// Without the host's addresses; without what the tenant may not name.
[[nodiscard]] Network for_tenants(Network network);
[[nodiscard]] Pool for_tenants(Tenant const& tenant, Pool pool);
// Without the other candidates, and without warnings: they compare with runs of the VF's earlier
// attachments, which may have been another tenant's.
[[nodiscard]] Attachment for_tenants(Attachment attachment);
[[nodiscard]] Verification for_tenants(Verification verification);
// Returns what the tenant gets of an event; nullopt: nothing.
[[nodiscard]] std::optional<Event> seen_by(Tenant const& tenant, Event const& event);
// The steps for VM and VF. Those for the host's interfaces serve other attachments too, and the
// sentences are written for admins.
[[nodiscard]] Plan for_tenants(Plan plan);

// Judges a tenant as a request wants it. Refuses a VM that another tenant has.
[[nodiscard]] Result<Plan> plan_tenant(DesiredState const& desired, Tenant const& tenant);
[[nodiscard]] Result<Plan> plan_tenant_removal(DesiredState const& desired,
                                               std::string const& name);

}  // namespace vfmgr
