// SPDX-License-Identifier: Apache-2.0
// The parts of KernelView put together from sysfs and one look at the network. Free functions; any
// thread. What they are given is what they see: nothing here talks to netlink.
#pragma once

#include "vfmgr/kernel/in_use.hpp"
#include "vfmgr/kernel/pci_names.hpp"
#include "vfmgr/kernel/vfio_variant.hpp"
#include "vfmgr/kernel/vpd.hpp"
#include "vfmgr/netlink/devlink.hpp"
#include "vfmgr/netlink/vf.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

[[nodiscard]] LinkLayer link_layer_of(Netdev const& netdev);
// The PF's own network device among those of its folder: no representor, the lowest port.
[[nodiscard]] Netdev const* own_netdev(LinuxKernelRoots const& roots,
                                       std::vector<Netdev const*> in_its_folder,
                                       PciAddress const& pf);
// The same among all of the host.
[[nodiscard]] Netdev const* pf_netdev(LinuxKernelRoots const& roots,
                                      std::vector<Netdev> const& netdevs, PciAddress const& pf);
// The same device or a VLAN device on it, whoever made it.
[[nodiscard]] Netdev const* leg_netdev(LinuxKernelRoots const& roots,
                                       std::vector<Netdev> const& netdevs, LegId const& leg);

// What devlink says of the PF; its VFs have ports in switchdev mode alone.
struct Switch {
    std::optional<EswitchMode> mode;
    std::vector<VfPort> ports;
};
struct PfSources {
    NetworkSnapshot const& network;
    VfSettings const& settings;
    Holders const& holders;
    Switch const& eswitch;
};
// What is looked up once, not at every look.
struct DeviceBooks {
    PciNameBook names;
    VfioAliases vfio;
    VpdBook vpd;
};
[[nodiscard]] Result<PfState> view_pf(LinuxKernelRoots const& roots, DeviceBooks& books,
                                      PfSources const& sources, PciAddress const& pf);

// Main-table routes without default routes, the host's own addresses, and what vfmgr made: its peer
// routes and everything on its VLAN devices, which are in the legs.
[[nodiscard]] std::vector<HostRoute> view_routes(NetworkSnapshot const& network);

}  // namespace vfmgr
