// SPDX-License-Identifier: Apache-2.0
// A snapshot of the host's network, read through netlink. Values; any thread may take one.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/sysfs.hpp"
#include "vfmgr/netlink/ip.hpp"
#include "vfmgr/netlink/link.hpp"
#include "vfmgr/netlink/packet_filter.hpp"
#include "vfmgr/netlink/rdma.hpp"

namespace vfmgr {

struct HostNetdevs {
    std::vector<Netdev> netdevs;
    std::vector<NetdevAddress> addresses;
};
[[nodiscard]] Result<HostNetdevs> read_host_netdevs(Deadline deadline);

[[nodiscard]] Netdev const* find_netdev(std::vector<Netdev> const& netdevs,
                                        std::optional<int> ifindex);

struct NetworkSnapshot {
    HostNetdevs host;
    std::vector<IpRoute> routes;
    std::vector<Neighbour> neighbours;
    std::vector<RdmaDevice> rdma_devices;  // none where the kernel has no RDMA
    std::map<std::string, std::vector<RdmaListener>>
        listeners;  // by RDMA device; devices without listeners are absent
    PacketFilter filter;
};
[[nodiscard]] Result<NetworkSnapshot> take_snapshot(Deadline deadline);

// Observes the RDMA links that are configured by name; steps.hpp makes and deletes them. Any
// thread.

// Tells whether the module for a link type is loaded or loadable: from /sys/module, modules.alias
// and modules.builtin, which are read again only when depmod has rewritten them.
class LinkModules {
  public:
    // Absent when these can't be read.
    [[nodiscard]] std::optional<bool> there(LinuxKernelRoots const& roots, SoftRdmaType type);

  private:
    std::mutex mutex_;  // guards the members below
    std::filesystem::file_time_type written_at_{};
    std::map<SoftRdmaType, bool> loadable_;
};

[[nodiscard]] Result<HostNetworkView> view_host_network(LinuxKernelRoots const& roots,
                                                        LinkModules& modules, Deadline deadline);

}  // namespace vfmgr
