// SPDX-License-Identifier: Apache-2.0
// Builds the parts of KernelView from sysfs and one network snapshot. Free functions; any thread.
// They use only what they are given: nothing here talks to netlink.
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
struct PfSources {
    NetworkSnapshot const& network;
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
