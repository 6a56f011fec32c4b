// SPDX-License-Identifier: Apache-2.0
// Edits a network for `vfctl network set`: only what is named changes. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/network.hpp"

namespace vfmgr {

struct NetworkEdit {
    std::string prefix{};  // empty, here and below: leave it alone
    std::string vlan{};    // "none": untagged
    std::string pkey{};    // "0x8001", "1=limited"; "none": any partition
    std::string mtu{};
    std::string rdma{};
    std::string dscp{};                 // "none": best effort
    std::vector<std::string> ranges{};  // "none": all of the prefix
    std::vector<NetworkPf> pfs{};       // added, or given another address
    std::vector<PciAddress> pfs_removed{};
};

[[nodiscard]] Result<Network> edit(Network network, NetworkEdit const& desired);

}  // namespace vfmgr
