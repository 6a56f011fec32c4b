// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/refusal_remedies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

namespace vfmgr {
namespace {

enum class Where { anywhere, switchdev, infiniband };

constexpr unsigned bit(VfAttribute attribute) {
    return 1U << static_cast<unsigned>(attribute);
}
constexpr unsigned any = ~0U;
constexpr unsigned rates = bit(VfAttribute::min_tx_rate) | bit(VfAttribute::max_tx_rate);
constexpr unsigned guids = bit(VfAttribute::node_guid) | bit(VfAttribute::port_guid);
constexpr unsigned switching =
    bit(VfAttribute::spoofchk) | bit(VfAttribute::trust) | bit(VfAttribute::query_rss);
constexpr unsigned ethernet_only =
    switching | rates | bit(VfAttribute::mac) | bit(VfAttribute::vlan);
constexpr int any_error = 0;

// {0} is the attribute's name, {1} the PF's address. The first matching row is the remedy.
struct Row {
    unsigned attributes;
    int error;
    Where where;
    std::string_view remedy;
};
constexpr std::array rows{
    // KERNEL.md#what-drivers-refuse: in switchdev mode mlx5 lacks VLAN, trust and spoof check.
    Row{bit(VfAttribute::vlan), EOPNOTSUPP, Where::switchdev,
        "the NIC is in switchdev mode: tag the VF's traffic at its representor (bridge, tc or "
        "Open vSwitch), and leave vlan out or list it in best_effort"},
    Row{rates, EOPNOTSUPP, Where::switchdev,
        "the NIC is in switchdev mode: set the rate with devlink port function rate on the VF's "
        "port of pci/{1} (devlink port show), and leave {0} out or list it in best_effort"},
    Row{switching, EOPNOTSUPP, Where::switchdev,
        "the NIC is in switchdev mode, where the rules at the VF's representor decide what it may "
        "do: leave {0} out, or list it in best_effort"},
    // KERNEL.md#infiniband-vfs: an IPoIB PF has operations for GUIDs and link state alone.
    Row{ethernet_only, EOPNOTSUPP, Where::infiniband,
        "a VF of an InfiniBand PF has no {0}: leave it out; node_guid, port_guid and link_state "
        "can be set"},
    // KERNEL.md#what-drivers-refuse: the PF does not manage its own switch.
    Row{any, EPERM, Where::anywhere,
        "check whether the NIC is in DPU mode: if so, its switch is managed on the DPU, so set {0} "
        "there; otherwise run vfmgr with CAP_NET_ADMIN"},
    // KERNEL.md#what-drivers-refuse: mlx5 always refuses 802.1ad.
    Row{bit(VfAttribute::vlan), EPROTONOSUPPORT, Where::anywhere,
        "this driver tags with 802.1Q only: leave the VLAN's proto out"},
    // KERNEL.md#infiniband-vfs: only IPoIB has ndo_set_vf_guid.
    Row{guids, EOPNOTSUPP, Where::anywhere, "only InfiniBand PFs set GUIDs of VFs: leave {0} out"},
    // KERNEL.md#switch-and-devlink: a VF has a port, with its function, in switchdev mode; Linux
    // 6.2. Earlier kernels reject the attribute as unknown: EINVAL.
    Row{bit(VfAttribute::roce), any_error, Where::switchdev,
        "this needs Linux 6.2 and a driver that supports it (devlink port function set ... roce): "
        "leave {0} out, or list it in best_effort"},
    Row{bit(VfAttribute::roce), EOPNOTSUPP, Where::anywhere,
        "RoCE of VFs can be set only in switchdev mode (devlink dev eswitch show pci/{1}): leave "
        "{0} out, or list it in best_effort"},
    // drivers/pci/iov.c, sriov_vf_msix_count_store()
    Row{bit(VfAttribute::msix_vectors), EBUSY, Where::anywhere,
        "unbind the VF from its driver first"},
    // igb, ixgbe, i40e check a rate against the link's speed; some accept only 0 as minimum.
    Row{rates, EINVAL, Where::anywhere,
        "bring the PF's link up, and keep the rate within its speed; many drivers support no "
        "minimum: leave it out, or list it in best_effort"},
    Row{any, EOPNOTSUPP, Where::anywhere,
        "this driver does not support it: leave {0} out, or list it in best_effort"},
    Row{any, any_error, Where::anywhere,
        "choose another value, leave {0} out, or list it in best_effort"},
};

bool fits(Row const& row, RefusedAttribute const& refused) {
    if (row.where == Where::switchdev && refused.eswitch_mode != EswitchMode::switchdev)
        return false;
    if (row.where == Where::infiniband && refused.link_layer != LinkLayer::infiniband) return false;
    return (row.attributes & bit(refused.attribute)) != 0 &&
           (row.error == any_error || row.error == refused.error);
}

}  // namespace

std::string remedy_for(RefusedAttribute const& refused) {
    auto const* const row =
        std::ranges::find_if(rows, [&](Row const& each) { return fits(each, refused); });
    return fmt::format(fmt::runtime(row->remedy), enum_name(refused.attribute), refused.pf);
}

}  // namespace vfmgr
