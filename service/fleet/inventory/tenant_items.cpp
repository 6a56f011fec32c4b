// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/inventory/tenant_items.hpp"

#include "api/types/json.hpp"
#include "api/types/network.hpp"
#include "api/types/pool.hpp"
#include "api/types/reservation.hpp"
#include "vfmgr/plan/tenants.hpp"

namespace vfmgr::fleet {
namespace {

// A tenant's snapshot on the host has no quarantine.
VfView tenant_view(Tenant const&, VfView vf) {
    vf.quarantine.reset();
    return vf;
}

VmInfo tenant_view(Tenant const&, VmInfo vm) {
    vm.pcie.reset();  // names the host's nodes
    return vm;
}

Attachment tenant_view(Tenant const&, Attachment attachment) {
    return for_tenants(std::move(attachment));
}

Verification tenant_view(Tenant const&, Verification run) {
    return for_tenants(std::move(run));
}

Network tenant_view(Tenant const&, Network network) {
    return for_tenants(std::move(network));
}

Pool tenant_view(Tenant const& viewer, Pool pool) {
    return for_tenants(viewer, std::move(pool));
}

Reservation tenant_view(Tenant const&, Reservation reservation) {
    return reservation;
}

template <class T>
std::optional<std::string> written_anew(Tenant const& viewer, std::string_view item) {
    auto const document = parse_json(item);
    if (!document) return std::nullopt;
    auto value = from_json_document<T>(*document, UnknownKeys::ignored);
    if (!value) return std::nullopt;
    return to_json_text(JsonWriter::encode(tenant_view(viewer, std::move(*value))));
}

}  // namespace

std::optional<std::string> tenant_text(FleetList list, Tenant const& viewer,
                                       std::string_view item) {
    switch (list) {
        case FleetList::pfs:
            return std::nullopt;  // no tenant sees PFs
        case FleetList::vfs:
            return written_anew<VfView>(viewer, item);
        case FleetList::vms:
            return written_anew<VmInfo>(viewer, item);
        case FleetList::attachments:
            return written_anew<Attachment>(viewer, item);
        case FleetList::verifications:
            return written_anew<Verification>(viewer, item);
        case FleetList::networks:
            return written_anew<Network>(viewer, item);
        case FleetList::pools:
            return written_anew<Pool>(viewer, item);
        case FleetList::reservations:
            break;
    }
    return written_anew<Reservation>(viewer, item);
}

}  // namespace vfmgr::fleet
