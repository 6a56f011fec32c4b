// SPDX-License-Identifier: Apache-2.0
// What drivers of PFs do differently: one table, read by the planner, netlink, the remedies for
// refusals, and the fakes. Nothing branches on the name of a PF's driver: what one driver needs is
// done for all. Only what a VM will notice of a change is looked up by name, as it can't be
// observed before. KERNEL.md#what-drivers-do-differently is written from the table. Constants, so
// plan/ and netlink/ include this file without linking its folder.
#pragma once

#include <array>
#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

#include "api/types/pf.hpp"
#include "api/types/vf.hpp"

namespace vfmgr::quirks {

enum class Effect {
    refuses,         // answers `error`; `remedy` tells users what to do
    refuses_equal,   // refuses even the value that it reports
    needs_pf_up,     // does nothing while the PF is down, and reports success
    outlives_vf,     // the next VF with that number gets the value
    reports_oddly,   // corrected where it is parsed
    has_other_file,  // instead of the kernel's
    resets_vf,       // resets the VF, under the driver of the VM that has it
    waits_for_load,  // the VF's driver takes the value over when it is loaded again
};
// What a driver refuses: which values, or in which state.
enum class When {
    always,
    zero,
    above_zero,
    multicast,
    tagged,
    dot1ad,
    with_qos,
    no_carrier,
    above_speed,
    vf_resetting,
    vf_bound,
    pf_down,
    foreign_switch
};
enum class Where { anywhere, switchdev, infiniband };

constexpr unsigned bit(VfAttribute attribute) {
    return 1U << static_cast<unsigned>(attribute);
}
constexpr unsigned every_attribute = (1U << enum_names<VfAttribute>.size()) - 1;
constexpr unsigned num_vfs = 1U << 31U;   // besides the attributes: the number of VFs
constexpr unsigned counters = 1U << 30U;  // and the counters of one
constexpr unsigned rates = bit(VfAttribute::min_tx_rate) | bit(VfAttribute::max_tx_rate);
constexpr unsigned guids = bit(VfAttribute::node_guid) | bit(VfAttribute::port_guid);
constexpr unsigned switching =
    bit(VfAttribute::spoofchk) | bit(VfAttribute::trust) | bit(VfAttribute::query_rss);
constexpr unsigned ethernet_only =
    switching | rates | bit(VfAttribute::mac) | bit(VfAttribute::vlan);
constexpr int any_error = 0;

// Written where a driver refuses the zero MAC, as libvirt does (virNetDevSetNetConfig()).
inline constexpr MacAddress stand_in_mac{{0x02, 0, 0, 0, 0, 0}};
// A VLAN number that means none: the VM may tag by itself (MLX4_VGT).
inline constexpr std::uint16_t vlan_of_the_vm = 4095;
// The file that takes the number of VFs where sriov_numvfs answers ENOENT.
inline constexpr std::string_view other_count_file = "mlx5_num_vfs";

struct Quirk {
    std::string_view drivers;  // "igb, ixgbe"; empty: any
    unsigned of = 0;           // bits of VfAttribute, num_vfs, counters
    Effect effect = Effect::refuses;
    Where where = Where::anywhere;
    When when = When::always;
    int error = any_error;      // errno
    std::string_view says{};    // what the members above don't say
    std::string_view remedy{};  // {0} is the attribute's name, {1} the PF's address
    std::string_view source;    // in Linux 6.1 where no release is named
    std::string_view test;      // "vf_test ParseVfSettings.NonsenseIsNoVf", "scenario guids"
};

// Users are told the remedy of the first row that fits and has one: rows for a PF's switch or link
// layer come before rows that hold anywhere.
inline constexpr std::array table{
    Quirk{.drivers = "bnxt_en",
          .of = num_vfs,
          .effect = Effect::needs_pf_up,
          .says = "makes none while the PF is down; the write succeeds",
          .source = "bnxt_sriov_configure()",
          .test = "plan_repair_test PlanRepairTest.BringsThePfUpBeforeItMakesVfs"},
    Quirk{.drivers = "mlx5_core",
          .of = num_vfs,
          .effect = Effect::has_other_file,
          .says = "NVIDIA's older one: ENOENT, and a file mlx5_num_vfs",
          .source = "unverified",
          .test = "vf_count_test SetNumVfsStep.OlderMlx5DriversHaveAFileOfTheirOwn"},
    Quirk{.drivers = "ice",
          .of = num_vfs,
          .error = ENOSPC,
          .says = "its MSI-X vectors or queues are used up",
          .remedy = "request fewer VFs: the NIC has no interrupt vectors or queues left",
          .source = "ice_set_per_vf_res()",
          .test = "quirks_test RemedyForCount.IsTheDriversOwn"},
    Quirk{.drivers = {},
          .of = num_vfs,
          .when = When::pf_down,
          .error = ENETDOWN,
          .remedy = "bring the PF up first, as this driver requires: ip link set dev PF up",
          .source = "unverified",
          .test = "quirks_test RemedyForCount.IsTheDriversOwn"},
    Quirk{.drivers = "mlx5_core",
          .of = guids,
          .effect = Effect::outlives_vf,
          .where = Where::infiniband,
          .says = "the next VF with that number gets them, until the PF's driver goes",
          .source = "sriov_restore_guids()",
          .test = "detach_outcome_test DetachOutcome.AVfThatIsGoneIsCleanUnlessItsGuidsReturn"},
    Quirk{.drivers = "mlx4_core",
          .of = bit(VfAttribute::vlan),
          .effect = Effect::reports_oddly,
          .says = "4095 (MLX4_VGT) for a VF that may tag by itself; read as none",
          .source = "mlx4_get_vf_config()",
          .test = "vf_test ParseVfSettings.Mlx4sSignForNoVlanIsNone"},
    Quirk{.drivers = "igb",
          .of = counters,
          .effect = Effect::reports_oddly,
          .says = "zeros, without ndo_get_vf_stats(); all zeros are read as none",
          .source = "igb_netdev_ops, rtnl_fill_vfinfo()",
          .test = "vf_counters_test ParseVfCounters.ZerosAllOverAreNone"},
    Quirk{.drivers = "igb, ixgbe",
          .of = rates | bit(VfAttribute::link_state),
          .effect = Effect::refuses_equal,
          .says = "rates without link, igb any link state: written only where they differ",
          .source = "igb_ndo_set_vf_bw(), ixgbe_ndo_set_vf_bw()",
          .test = "vf_settings_test ToWrite.LeavesOutWhatDriversRefuseEvenWhenItHolds"},

    // What a VM notices of a change while it has the VF.
    Quirk{.drivers = "i40e",
          .of = bit(VfAttribute::mac) | bit(VfAttribute::vlan) | bit(VfAttribute::trust),
          .effect = Effect::resets_vf,
          .says = "resets the VF when it changes; for a MAC even if it is the same",
          .source = "i40e_ndo_set_vf_mac(), i40e_ndo_set_vf_port_vlan(), i40e_ndo_set_vf_trust()",
          .test = "driver_model_test Resets.OfDriversThatResetAVfWhenASettingChanges"},
    Quirk{.drivers = "ice",
          .of = bit(VfAttribute::mac) | bit(VfAttribute::vlan) | bit(VfAttribute::trust),
          .effect = Effect::resets_vf,
          .says = "resets the VF when it changes",
          .source = "ice_set_vf_mac(), ice_set_vf_port_vlan(), ice_set_vf_trust()",
          .test = "driver_model_test Resets.OfDriversThatResetAVfWhenASettingChanges"},
    Quirk{.drivers = "ixgbe",
          .of = bit(VfAttribute::trust) | bit(VfAttribute::link_state),
          .effect = Effect::resets_vf,
          .says = "has the VF's driver reset it when it changes",
          .source = "ixgbe_ndo_set_vf_trust(), ixgbe_set_vf_link_state()",
          .test = "driver_model_test Resets.OfDriversThatResetAVfWhenASettingChanges"},
    Quirk{.drivers = "igb, ixgbe, mlx5_core",
          .of = bit(VfAttribute::mac),
          .effect = Effect::waits_for_load,
          .says = "the VF's driver takes it over when it is loaded again",
          .source = "igb_ndo_set_vf_mac(), ixgbe_ndo_set_vf_mac(), mlx5e_set_netdev_dev_addr()",
          .test = "plan_change_test PlanChange.ANewMacThatWaitsForTheVmsDriverNeedsConsent"},

    // In switchdev mode.
    Quirk{.drivers = "mlx5_core",
          .of = bit(VfAttribute::vlan),
          .where = Where::switchdev,
          .when = When::tagged,
          .error = EOPNOTSUPP,
          .says = "VLAN 0 succeeds, for libvirt",
          .remedy = "the NIC is in switchdev mode: tag the VF's traffic at its representor "
                    "(bridge, tc or Open vSwitch), and leave vlan out or list it in best_effort",
          .source = "core/esw/legacy.c",
          .test = "driver_model_test Quirks.AsTheFactsSay"},
    Quirk{.drivers = "mlx5_core",
          .of = rates,
          .where = Where::switchdev,
          .error = EOPNOTSUPP,
          .says = "older ones; Linux 6.1's takes them",
          .remedy = "the NIC is in switchdev mode: set the rate with devlink port function rate on "
                    "the VF's port of pci/{1} (devlink port show), and leave {0} out or list it in "
                    "best_effort",
          .source = "unverified",
          .test = "driver_model_test Quirks.AsTheFactsSay"},
    Quirk{.drivers = "mlx5_core, ice",
          .of = switching,
          .where = Where::switchdev,
          .error = EOPNOTSUPP,
          .says = "ice trust alone",
          .remedy = "the NIC is in switchdev mode, where the rules at the VF's representor decide "
                    "what it may do: leave {0} out, or list it in best_effort",
          .source = "core/esw/legacy.c, ice_set_vf_trust()",
          .test = "driver_model_test Quirks.AsTheFactsSay"},
    // A VF has a port, with its function, in switchdev mode. Earlier kernels reject the attribute
    // as unknown: EINVAL.
    Quirk{.drivers = {},
          .of = bit(VfAttribute::roce),
          .where = Where::switchdev,
          .says = "before Linux 6.2, or without support in the driver",
          .remedy = "this needs Linux 6.2 and a driver that supports it (devlink port function set "
                    "... roce): leave {0} out, or list it in best_effort",
          .source = "DEVLINK_PORT_FN_ATTR_CAPS",
          .test = "quirks_test RemedyFor.IsTheOneOfTheCause"},

    // On InfiniBand the PF's network device is IPoIB's, which sets only GUIDs and link state.
    Quirk{.drivers = "mlx5_core",
          .of = ethernet_only,
          .where = Where::infiniband,
          .error = EOPNOTSUPP,
          .remedy = "a VF of an InfiniBand PF has no {0}: leave it out; node_guid, port_guid and "
                    "link_state can be set",
          .source = "ipoib_netdev_ops_pf",
          .test = "driver_model_test Quirks.AsTheFactsSay"},

    // Anywhere.
    Quirk{.drivers = "mlx5_core",
          .of = every_attribute,
          .when = When::foreign_switch,
          .error = EPERM,
          .says = "a BlueField in DPU mode; until 2022 even VLAN 0",
          .remedy = "check whether the NIC is in DPU mode: if so, its switch is managed on the "
                    "DPU, so set {0} there; otherwise run vfmgr with CAP_NET_ADMIN",
          .source = "\"net/mlx5e: Unblock setting vid 0 for VF in case PF isn't eswitch manager\"",
          .test = "quirks_test RemedyFor.IsTheOneOfTheCause"},
    Quirk{.drivers = "bnxt_en",
          .of = every_attribute,
          .when = When::pf_down,
          .error = EINVAL,
          .says = "older ones",
          .source = "unverified",
          .test = "driver_model_test Quirks.AsTheFactsSay"},
    Quirk{.drivers = "igb, ixgbe, i40e, ice, bnxt_en, mlx5_core",
          .of = bit(VfAttribute::mac),
          .when = When::multicast,
          .error = EINVAL,
          .source = "ndo_set_vf_mac() of each",
          .test = "driver_model_test Quirks.AsTheFactsSay"},
    Quirk{
        .drivers = "ixgbe, i40e",
        .of = bit(VfAttribute::mac),
        .when = When::zero,
        .error = EINVAL,
        .says = "older ones: the MAC is 02:00:00:00:00:00 then, which is read as none",
        .source = "unverified",
        .test = "driver_model_test DriverModel.AZeroMacThatIsRefusedBecomesTheOneThatStandsForIt"},
    Quirk{.drivers = "i40e",
          .of = rates | bit(VfAttribute::mac),
          .when = When::vf_resetting,
          .error = EAGAIN,
          .source = "i40e_ndo_set_vf_mac(), i40e_ndo_set_vf_bw()",
          .test = "quirks_test RemedyFor.IsThereForEveryRefusal"},
    Quirk{.drivers = "igb, ixgbe, i40e, ice, bnxt_en, mlx5_core",
          .of = bit(VfAttribute::vlan),
          .when = When::dot1ad,
          .error = EPROTONOSUPPORT,
          .says = "ice outside of its double VLAN mode",
          .remedy = "this driver tags with 802.1Q only: leave the VLAN's proto out",
          .source = "ndo_set_vf_vlan() of each",
          .test = "driver_model_test Quirks.AsTheFactsSay"},
    Quirk{.drivers = "bnxt_en",
          .of = bit(VfAttribute::vlan),
          .when = When::with_qos,
          .error = EINVAL,
          .source = "bnxt_set_vf_vlan()",
          .test = "driver_model_test Quirks.AsTheFactsSay"},
    Quirk{.drivers = "igb",
          .of = bit(VfAttribute::link_state) | bit(VfAttribute::query_rss),
          .error = EOPNOTSUPP,
          .source = "igb_netdev_ops",
          .test = "driver_model_test Quirks.AsTheFactsSay"},
    Quirk{.drivers = "igb, ixgbe, i40e",
          .of = bit(VfAttribute::min_tx_rate),
          .when = When::above_zero,
          .error = EINVAL,
          .source = "igb_ndo_set_vf_bw(), ixgbe_ndo_set_vf_bw(), i40e_ndo_set_vf_bw()",
          .test = "driver_model_test Quirks.AsTheFactsSay"},
    Quirk{.drivers = "igb, ixgbe",
          .of = rates,
          .when = When::no_carrier,
          .error = EINVAL,
          .says = "ixgbe at any speed but 10 Gbit/s too",
          .remedy = "bring the PF's link up, and keep the rate within its speed; many drivers "
                    "support no minimum: leave it out, or list it in best_effort",
          .source = "igb_ndo_set_vf_bw(), ixgbe_ndo_set_vf_bw()",
          .test = "driver_model_test Quirks.AsTheFactsSay"},
    Quirk{.drivers = "igb, ixgbe, i40e",
          .of = bit(VfAttribute::max_tx_rate),
          .when = When::above_speed,
          .error = EINVAL,
          .source = "igb_ndo_set_vf_bw(), ixgbe_ndo_set_vf_bw(), i40e_ndo_set_vf_bw()",
          .test = "quirks_test RemedyFor.IsTheOneOfTheCause"},
    Quirk{.drivers = {},
          .of = guids,
          .error = EOPNOTSUPP,
          .says = "unless the device is IPoIB's",
          .remedy = "only InfiniBand PFs set GUIDs of VFs: leave {0} out",
          .source = "handle_vf_guid()",
          .test = "driver_model_test Quirks.AsTheFactsSay"},
    Quirk{.drivers = {},
          .of = bit(VfAttribute::roce),
          .error = EOPNOTSUPP,
          .says = "in legacy mode VFs have no port",
          .remedy = "RoCE of VFs can be set only in switchdev mode (devlink dev eswitch show "
                    "pci/{1}): leave {0} out, or list it in best_effort",
          .source = "DEVLINK_CMD_PORT_GET",
          .test = "driver_model_test Quirks.AsTheFactsSay"},
    Quirk{.drivers = {},
          .of = bit(VfAttribute::msix_vectors),
          .when = When::vf_bound,
          .error = EBUSY,
          .remedy = "unbind the VF from its driver first",
          .source = "sriov_vf_msix_count_store()",
          .test = "quirks_test RemedyFor.IsTheOneOfTheCause"},
};

// Returns everything on which some driver has this effect: bits as in Quirk::of.
constexpr unsigned affected_by(Effect effect) {
    unsigned of = 0;
    for (auto const& quirk : table)
        if (quirk.effect == effect) of |= quirk.of;
    return of;
}

constexpr bool is_of(Quirk const& quirk, std::string_view driver) {
    for (auto rest = quirk.drivers; !rest.empty();) {
        auto const comma = rest.find(", ");
        if (rest.substr(0, comma) == driver) return true;
        rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 2);
    }
    return false;
}
// Returns everything on which this driver has the effect.
constexpr unsigned affected_by(Effect effect, std::string_view driver) {
    unsigned of = 0;
    for (auto const& quirk : table)
        if (quirk.effect == effect && is_of(quirk, driver)) of |= quirk.of;
    return of;
}

[[nodiscard]] inline bool has_any(VfSpec const& settings, unsigned of) {
    bool found = false;
    for_each_member([&](VfAttribute each, auto member) {
        found = found || ((of & bit(each)) != 0 && (settings.*member).has_value());
    });
    return found;
}

// An attribute of a VF that a driver refused.
struct Refused {
    VfAttribute attribute;
    int error = 0;  // errno
    LinkLayer link_layer = LinkLayer::ethernet;
    std::optional<EswitchMode> eswitch_mode;
    std::string pf;  // its PCI address, for commands
};
// Returns a clause without a full stop, like every remedy.
[[nodiscard]] std::string remedy_for(Refused const& refused);
// The remedy when a driver itself refuses a number of VFs; nothing for any other errno.
[[nodiscard]] std::optional<std::string> remedy_for_count(int error);

}  // namespace vfmgr::quirks
