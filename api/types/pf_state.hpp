// SPDX-License-Identifier: Apache-2.0
// What is observed of a PF, and the API's answer about it. Values; any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/pf.hpp"
#include "api/types/time.hpp"
#include "api/types/vf.hpp"

namespace vfmgr {

// The host interface into a network: the PF's own netdev, or a VLAN device on it.
struct InterfaceId {
    PciAddress pf;
    std::optional<std::uint16_t> vlan;
    auto operator<=>(InterfaceId const&) const = default;
};
[[nodiscard]] std::string to_string(
    InterfaceId const& interface);  // "0000:01:00.0" or "0000:01:00.0 vlan 100"

// The methods by which the kernel may reset a VF, in its order: "flr bus".
struct VfResetMethods {
    std::uint16_t index = 0;
    std::string methods;
    auto operator<=>(VfResetMethods const&) const = default;
};
struct PeerEntry {  // a route with a permanent neighbour entry, as AddPeer makes it
    IpAddress address;
    std::optional<MacAddress> mac;  // absent: route without neighbour
    bool operator==(PeerEntry const&) const = default;
};

// A VM that reaches only the responder over a host interface, and only from this address.
struct ClosedVm {
    IpAddress address;
    MacAddress mac;
    IpAddress responder;
    bool guest_plane = false;  // it also reaches vfmgr-guestd's TCP port there
    bool operator==(ClosedVm const&) const = default;
};

// A PF's netdev, or a VLAN device on it.
struct HostInterface {
    InterfaceId id;
    std::string ifname;
    bool up = false;
    std::uint32_t mtu = 0;
    bool ours = false;               // a VLAN device made by vfmgr (ifalias "vfmgr")
    std::vector<IpPrefix> prefixes;  // of the addresses, network bits only
    std::vector<IpAddress> addresses;
    std::vector<PeerEntry> peers;
    std::vector<IpAddress> filtered{};  // addresses at which it reaches only the responder
    std::vector<ClosedVm> closed{};
    bool operator==(HostInterface const&) const = default;
};

// A program that listens for RDMA CM connections on the PF's RDMA device.
struct RdmaListener {
    std::optional<std::int32_t> pid;   // absent: the kernel itself
    std::string comm;                  // "rping", "nvmet_rdma"
    std::optional<IpAddress> address;  // absent: every address, or one that is not IP
    std::uint16_t port = 0;            // 0 when the address is not IP
    bool operator==(RdmaListener const&) const = default;
};

struct PfState {
    PfInfo info;
    std::vector<VfState> vfs;               // by index, ascending; may have gaps while VFs appear
    std::vector<HostInterface> interfaces;  // the untagged one first
    std::vector<RdmaListener> listeners{};
    // State that steps change while they run. driver_override is not read: reading it takes the
    // device's lock, and an unbind that hangs holds that lock.
    std::optional<bool> drivers_autoprobe{};
    std::vector<VfResetMethods> reset_methods{};  // as `vfs`, without those that have none
    bool stale = false;                           // not readable now; the rest is from observed_at
    std::string stale_reason;
    // An operation on it hangs in the kernel; this sentence names it. No step is begun on this PF.
    std::optional<std::string> stuck;
    bool pci_busy = false;  // the hang also blocks making and removing VFs anywhere on this host
    Time observed_at{};
    bool operator==(PfState const&) const = default;
};

// What is observed of a PF, with what the daemon knows of it: the answer of GET /v1/pfs/{pci}.

// Where the PF stands, and the command that puts it right.
struct PfStandingView {
    Standing is = Standing::unknown;
    std::optional<std::string> detail;  // absent: nothing is wrong
    std::optional<std::string> remedy;
};

struct PfView {
    PfState pf;               // without its `vfs`
    std::vector<VfView> vfs;  // in their place
    PfStandingView standing;
    std::optional<PfSpec> spec;         // absent: the PF is only observed
    std::uint64_t revision = 0;         // of the spec
    std::vector<std::string> networks;  // that it carries, by name
    std::vector<std::string> drift;     // its own, and that of VFs which are gone
};

// The body of a request to move what is stored of a PF to another address.
struct RekeyRequest {
    PciAddress to;
};

extern template struct Json<InterfaceId>;
extern template struct Json<VfResetMethods>;
void append_json(std::string& text, VfResetMethods const& vf);
// A HostInterface is read without its PF, which PfState adds.
// {"info": …, "vfs": […], "interfaces": […], "stale": …, "stale_reason": …, "stuck": …, …}
extern template struct Json<PfState>;
extern template struct Json<PfView>;
extern template struct Json<RekeyRequest>;

}  // namespace vfmgr
