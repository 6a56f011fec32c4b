// SPDX-License-Identifier: Apache-2.0
// The host's network devices, as far as software RDMA links need them, and all RDMA devices: a part
// of HostView. Values; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/types/json_fwd.hpp"
#include "api/types/pci_address.hpp"
#include "api/types/rdma_link.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

struct NetdevState {
    bool ethernet = false;
    bool loopback = false;
    bool up = false;                        // administratively
    std::optional<std::string> controller;  // the bond or bridge that it is part of
    std::optional<std::string> parent;      // of a VLAN device; "" when in another namespace
    std::optional<PciAddress> pci;          // of the function it belongs to
    bool operator==(NetdevState const&) const = default;
};

struct HostNetworkView {
    std::map<std::string, NetdevState> netdevs;
    std::map<std::string, ObservedRdmaLink> rdma;  // hardware ones, too: their names are taken
    // Whether the kernel has the module or can load it; absent: this process can't find out.
    std::optional<bool> rxe_module;
    std::optional<bool> siw_module;
    bool stale = false;  // not readable now; the rest is from observed_at
    std::string stale_reason;
    Time observed_at{};
    bool operator==(HostNetworkView const&) const = default;
};

extern template struct Json<NetdevState>;
extern template struct Json<HostNetworkView>;

}  // namespace vfmgr
