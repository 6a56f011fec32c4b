// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/desired_state.hpp"

#include <algorithm>

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<PfBase> V>
void fields(F& f, V& base) {
    f.value("up", base.up);
    f.value("mtu", base.mtu);
    f.defaulted("rdma", base.rdma);
    f.defaulted("addresses", base.addresses);
}

template <class F, Of<DesiredPf> V>
void fields(F& f, V& pf) {
    f.value("spec", pf.spec);
    f.value("revision", pf.revision);
    f.nullable("base", pf.base);
}

template <class F, Of<Quarantine> V>
void fields(F& f, V& quarantine) {
    f.value("vf", quarantine.vf);
    f.value("attachment", quarantine.attachment);
    f.value("reason", quarantine.reason);
    f.value("residue", quarantine.residue);
    f.value("since", quarantine.since);
}

template <class F, Of<DesiredNetwork> V>
void fields(F& f, V& network) {
    f.value("network", network.network);
    f.value("revision", network.revision);
}

template <class F, Of<DesiredPool> V>
void fields(F& f, V& pool) {
    f.value("pool", pool.pool);
    f.value("revision", pool.revision);
}

template <class F, Of<DesiredTenant> V>
void fields(F& f, V& tenant) {
    f.value("tenant", tenant.tenant);
    f.value("revision", tenant.revision);
}

template <class F, Of<DesiredIdentities> V>
void fields(F& f, V& desired) {
    f.value("identities", desired.identities);
    f.value("revision", desired.revision);
}

template <class F, Of<DesiredRdmaLink> V>
void fields(F& f, V& link) {
    f.value("link", link.link);
    f.value("revision", link.revision);
}

bool is_attached(DesiredState const& desired, VfId const& vf) {
    return std::ranges::any_of(desired.attachments, [&](auto const& each) {
        return each.second.vf == vf && each.second.state == AttachmentState::attached;
    });
}

Network const* find_network(Networks const& networks, std::string_view name) {
    auto const found = networks.find(std::string(name));
    return found == networks.end() ? nullptr : &found->second.network;
}

std::optional<CarriedNetwork> network_of(Networks const& networks, Attachment const& attachment) {
    if (!attachment.spec.network) return std::nullopt;
    auto const* const network = find_network(networks, *attachment.spec.network);
    auto const* const host = network ? host_address_on(*network, attachment.vf.pf) : nullptr;
    if (!host) return std::nullopt;
    return CarriedNetwork{network, *host};
}

template struct Json<DesiredPf>;
template struct Json<DesiredNetwork>;
template struct Json<DesiredPool>;
template struct Json<DesiredTenant>;
template struct Json<DesiredIdentities>;
template struct Json<Quarantine>;
template struct Json<DesiredRdmaLink>;

}  // namespace vfmgr
