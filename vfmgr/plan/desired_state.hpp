// SPDX-License-Identifier: Apache-2.0
// The desired state and the attachments: the store's content as a value. The control thread owns
// the authoritative copy; all other threads read copies.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/firmware.hpp"
#include "api/types/fleet.hpp"
#include "api/types/guest_keys.hpp"
#include "api/types/identities.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/network.hpp"
#include "api/types/pf.hpp"
#include "api/types/pool.hpp"
#include "api/types/rdma.hpp"
#include "api/types/reservation.hpp"
#include "api/types/tenant.hpp"

namespace vfmgr {

// The PF's link before vfmgr first used it. It is restored when the last user is gone.
struct PfBase {
    bool up = false;
    std::uint32_t mtu = 1500;
    bool rdma = false;                 // it had an RDMA device of its own or one made by another
                                       // program
    std::vector<IpAddress> addresses;  // on it and on VLAN devices that vfmgr did not make
    bool operator==(PfBase const&) const = default;
};

struct DesiredPf {
    PfSpec spec;
    std::uint64_t revision = 1;  // ETag
    std::optional<PfBase> base;
    bool operator==(DesiredPf const&) const = default;
};

// A VF that could not be shown to be clean. It is never attached. An admin lifts the quarantine,
// which repeats the detach of the attachment.
struct Quarantine {
    VfId vf;
    Attachment attachment;  // the attachment that ended here
    std::string reason;
    std::vector<std::string> residue;
    Time since{};
    bool operator==(Quarantine const&) const = default;
};

// A link that was requested by name. It is made again whenever it is absent.
struct DesiredRdmaLink {
    SoftRdmaLink link;
    std::uint64_t revision = 1;  // ETag
    bool operator==(DesiredRdmaLink const&) const = default;
};

struct DesiredNetwork {
    Network network;
    std::uint64_t revision = 1;  // ETag
    bool operator==(DesiredNetwork const&) const = default;
};
using Networks = std::map<std::string, DesiredNetwork>;  // by name

struct DesiredPool {
    Pool pool;
    std::uint64_t revision = 1;  // ETag
    bool operator==(DesiredPool const&) const = default;
};

struct DesiredTenant {
    Tenant tenant;
    std::uint64_t revision = 1;  // ETag
    bool operator==(DesiredTenant const&) const = default;
};
using Tenants = std::map<std::string, DesiredTenant>;  // by name

struct DesiredIdentities {
    Identities identities;
    std::uint64_t revision = 0;  // ETag; 0: never set
    bool operator==(DesiredIdentities const&) const = default;
};

struct DesiredState {
    std::map<PciAddress, DesiredPf> pfs;
    Networks networks;
    std::map<std::string, DesiredPool> pools;         // by name
    std::map<std::string, Reservation> reservations;  // by name; none that has expired
    DesiredIdentities handed_out;                     // what this host may hand out
    std::map<std::string, Attachment> attachments;
    std::map<VfId, Quarantine> quarantine;
    std::map<PciAddress, FirmwareTries> firmware_tries;  // by FirmwareCard::pci
    std::map<std::string, DesiredRdmaLink> rdma_links;   // by name
    // Identities of the PFs about which this state holds anything: an address is not an identity.
    std::map<PciAddress, PfIdentity> identities{};
    Tenants tenants{};
    std::map<std::string, GuestKeys> guest_keys{};  // by attachment
    std::optional<FleetMembership> fleet{};
    // When a backup was put in the place of the store that was here, until an admin or the fleet
    // confirms that nothing is attached elsewhere under what it does not know.
    std::optional<Time> restored_at{};
    bool operator==(DesiredState const&) const = default;
};

[[nodiscard]] bool is_attached(DesiredState const& desired, VfId const& vf);
// nullptr: there is none of that name. Points into `networks`.
[[nodiscard]] Network const* find_network(Networks const& networks, std::string_view name);
// Returns the network of an attachment, if it has one that its PF carries.
struct CarriedNetwork {
    Network const* network;  // never nullptr; points into `networks`
    IpAddress host_address;  // on the attachment's PF
};
[[nodiscard]] std::optional<CarriedNetwork> network_of(Networks const& networks,
                                                       Attachment const& attachment);

extern template struct Json<DesiredPf>;
extern template struct Json<DesiredNetwork>;
extern template struct Json<DesiredPool>;
extern template struct Json<DesiredTenant>;
extern template struct Json<DesiredIdentities>;
extern template struct Json<Quarantine>;
extern template struct Json<DesiredRdmaLink>;

}  // namespace vfmgr
