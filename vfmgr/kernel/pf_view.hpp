// SPDX-License-Identifier: Apache-2.0
// A PF that is open for changes of its VFs: a netlink socket, and the sysfs file that identifies
// the PF's network interface. Kept from one step to the next, because finding the interface takes
// longer than setting it. Owned by one thread at a time; the caller holds the PF's claim.
#pragma once

#include "api/os/descriptor.hpp"
#include "api/types/pf.hpp"
#include "vfmgr/kernel/in_use.hpp"
#include "vfmgr/kernel/pci.hpp"
#include "vfmgr/kernel/sysfs.hpp"
#include "vfmgr/kernel/vfio_variant.hpp"
#include "vfmgr/netlink/devlink.hpp"
#include "vfmgr/netlink/socket.hpp"
#include "vfmgr/netlink/vf.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

class OpenPf {
  public:
    // not_found without such a device.
    [[nodiscard]] static Result<OpenPf> open(LinuxKernelRoots const& roots, PciAddress const& pf,
                                             Deadline deadline);

    // Asks the kernel whether this interface is still the PF's, with its name and number. False
    // where one file can't answer that: with no interface, or with several (representors). Then
    // open the PF again.
    [[nodiscard]] bool unchanged() const;
    // Empty when the PF has none.
    [[nodiscard]] std::optional<Netdev> const& netdev() const { return netdev_; }
    [[nodiscard]] bool has_vf(std::uint16_t index) const;  // checks now
    [[nodiscard]] NlSocket& socket() { return socket_; }

  private:
    OpenPf(NlSocket socket, FileDescriptor folder)
        : socket_(std::move(socket)), folder_(std::move(folder)) {}

    NlSocket socket_;
    FileDescriptor folder_;  // the PF's, O_PATH
    std::optional<Netdev> netdev_;
    FileDescriptor uevent_;     // of the PF's only interface
    std::string event_ifname_;  // what uevent_ reads while the interface is unchanged
};

// Builds the parts of KernelView from sysfs and one network snapshot. Free functions; any thread.
// They use only what they are given: nothing here talks to netlink.

[[nodiscard]] LinkLayer link_layer_of(Netdev const& netdev);
// Selects the PF's own network device from its folder: no representor, the lowest port.
[[nodiscard]] Netdev const* own_netdev(LinuxKernelRoots const& roots,
                                       std::vector<Netdev const*> in_its_folder,
                                       PciAddress const& pf);
// The same, among all netdevs of the host.
[[nodiscard]] Netdev const* pf_netdev(LinuxKernelRoots const& roots,
                                      std::vector<Netdev> const& netdevs, PciAddress const& pf);
// Returns the PF's device or a VLAN device on it, even if vfmgr did not make it.
[[nodiscard]] Netdev const* interface_netdev(LinuxKernelRoots const& roots,
                                             std::vector<Netdev> const& netdevs,
                                             InterfaceId const& interface);

// devlink's view of the PF; its VFs have ports in switchdev mode alone.
struct Switch {
    std::optional<EswitchMode> mode;
    std::vector<VfPort> ports;
};
// VFs with what must be read of them before their holders can be found.
struct ListedVf {
    PciAddress pci;
    VfioNodes vfio;
};
using ListedVfs = std::map<std::uint16_t, ListedVf>;
[[nodiscard]] Result<ListedVfs> list_vfs_with_nodes(LinuxKernelRoots const& roots,
                                                    PciAddress const& pf);

struct PfSources {
    NetworkSnapshot const& network;
    ListedVfs const& vfs;
    VfSettings const& settings;
    Holders const& holders;
    Switch const& eswitch;
};
// Facts that are read once, not on every observation.
struct DeviceBooks {
    PciNameBook names;
    VfioAliases vfio;
    VpdBook vpd;
};
[[nodiscard]] Result<PfState> view_pf(LinuxKernelRoots const& roots, DeviceBooks& books,
                                      PfSources const& sources, PciAddress const& pf);

// Main-table routes except default routes, the host's own addresses, and what vfmgr made: its peer
// routes and everything on its VLAN devices, which the interfaces list.
[[nodiscard]] std::vector<HostRoute> view_routes(NetworkSnapshot const& network);

}  // namespace vfmgr
