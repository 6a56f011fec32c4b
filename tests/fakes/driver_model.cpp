// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/driver_model.hpp"

#include <algorithm>
#include <cerrno>

namespace vfmgr {

namespace {

// Reports what the kernel zeroed, as a driver without link state does: it still reports auto.
VfSpec ethernet_report() {
    VfSpec report;
    report.mac = MacAddress{};
    report.vlan = Vlan{};
    report.spoofchk = true;
    report.trust = false;
    report.link_state = LinkState::auto_;
    report.min_tx_rate_mbps = 0;
    report.max_tx_rate_mbps = 0;
    return report;
}

// IPoIB reports no MAC and the like: vfmgr leaves out what the kernel makes up. The GUIDs are those
// that were set, 0 where none was (vfmgr/kernel/KERNEL.md#infiniband-vfs). That the policy of new
// ports is "down" is unverified.
VfSpec infiniband_report() {
    VfSpec report;
    report.link_state = LinkState::disable;
    report.node_guid = Guid{};
    report.port_guid = Guid{};
    return report;
}

VfSpec full_report() {
    auto report = ethernet_report();
    report.node_guid = Guid{};
    report.port_guid = Guid{};
    report.roce = true;
    return report;
}

VfSpec switchdev_report() {
    auto report = ethernet_report();
    report.roce = true;
    return report;
}

// What drivers refuse alike beside the table: ixgbe takes query_rss and mlx5 divides its vectors,
// but the fakes leave both out; no other driver does (unverified).
constexpr unsigned left_out =
    quirks::bit(VfAttribute::query_rss) | quirks::bit(VfAttribute::msix_vectors);
constexpr unsigned left_out_of_ethernet = left_out | quirks::guids;
// RoCE is set at a VF's port, which only a switch in switchdev mode has.
constexpr unsigned roce = quirks::bit(VfAttribute::roce);

// What each driver refuses is in vfmgr/kernel/quirks.hpp. "unverified": neither from
// vfmgr/kernel/KERNEL.md nor observed in the lab. The order in which a node and a port GUID must be
// sent shows below this seam, in vfmgr/kernel.
std::vector<DriverModel> const models = {
    // QEMU's igb NIC with Linux's igb driver, as in the lab.
    {.name = "igb",
     .driver = "igb",
     .vf_driver = "igbvf",
     .new_vf = ethernet_report(),
     .left_out = left_out_of_ethernet | roce},
    // Offset and stride are unverified.
    {.name = "ixgbe",
     .driver = "ixgbe",
     .vf_driver = "ixgbevf",
     .new_vf = ethernet_report(),
     .left_out = left_out_of_ethernet | roce},
    // As ixgbe for offset and stride.
    {.name = "i40e",
     .driver = "i40e",
     .vf_driver = "iavf",
     .new_vf = ethernet_report(),
     .left_out = left_out_of_ethernet | roce,
     .vf_offset = 16,
     .vf_stride = 1},
    // Unverified: accepts both rates.
    {.name = "ice",
     .driver = "ice",
     .vf_driver = "iavf",
     .new_vf = ethernet_report(),
     .left_out = left_out_of_ethernet | roce,
     .vf_offset = 8,
     .vf_stride = 1},
    // Makes no VFs while the PF is down, and the write of the count succeeds even so.
    {.name = "bnxt_en",
     .driver = "bnxt_en",
     .vf_driver = "bnxt_en",
     .new_vf = ethernet_report(),
     .left_out = left_out_of_ethernet | roce,
     .makes_vfs_only_when_up = true},
    // Only the guest sees the node GUID that it derives from the admin MAC.
    {.name = "mlx5",
     .driver = "mlx5_core",
     .vf_driver = "mlx5_core",
     .new_vf = ethernet_report(),
     .left_out = left_out_of_ethernet | roce,
     .vf_offset = 2,
     .vf_stride = 1},
    // Its VFs have ports, whose functions have RoCE (KERNEL.md#switch-and-devlink).
    {.name = "mlx5_switchdev",
     .driver = "mlx5_core",
     .vf_driver = "mlx5_core",
     .new_vf = switchdev_report(),
     .where = quirks::Where::switchdev,
     .left_out = left_out_of_ethernet,
     .vf_offset = 2,
     .vf_stride = 1},
    // Its netdev is IPoIB's. GUIDs outlive VFs (KERNEL.md#guids-outlive-vfs).
    {.name = "mlx5_infiniband",
     .driver = "mlx5_core",
     .vf_driver = "mlx5_core",
     .new_vf = infiniband_report(),
     .where = quirks::Where::infiniband,
     .left_out = left_out | roce,
     .link_layer = LinkLayer::infiniband,
     .vf_offset = 2,
     .vf_stride = 1,
     .keeps_guids = true},
    // No driver: accepts everything and reports it, GUIDs too.
    {.name = "obliging", .driver = "obliging", .vf_driver = "mlx5_core", .new_vf = full_report()},
};

bool zero(std::string_view member, VfSpec const& spec) {
    if (member == "mac") return spec.mac->zero();
    if (member == "min_tx_rate_mbps") return *spec.min_tx_rate_mbps == 0;
    return false;
}

// States that a fake host is never in apply to no value.
bool applies(quirks::When when, PfState const& pf, std::string_view member, VfSpec const& spec) {
    using quirks::When;
    switch (when) {
        case When::always:
            return true;
        case When::zero:
            return zero(member, spec);
        case When::above_zero:
            return !zero(member, spec);
        case When::multicast:
            return spec.mac->multicast();
        case When::tagged:
            return spec.vlan->id != 0;
        case When::dot1ad:
            return spec.vlan->proto == VlanProtocol::dot1ad;
        case When::with_qos:
            return spec.vlan->qos != 0;
        case When::no_carrier:
            return !pf.info.carrier;
        case When::pf_down:
            return !pf.info.up;
        default:
            return false;
    }
}

bool refuses_as(DriverModel const& model, quirks::Quirk const& quirk) {
    auto const drivers = ", " + std::string(quirk.drivers) + ",";
    return quirk.effect == quirks::Effect::refuses &&
           drivers.find(", " + model.driver + ",") != drivers.npos &&
           (quirk.where == quirks::Where::anywhere || quirk.where == model.where);
}

}  // namespace

std::vector<DriverModel> const& driver_models() {
    return models;
}

DriverModel const& driver_model(std::string_view name) {
    auto const found = std::ranges::find(driver_models(), name, &DriverModel::name);
    if (found == driver_models().end()) abort();
    return *found;
}

PciAddress vf_address(DriverModel const& model, PciAddress const& pf, std::uint16_t index) {
    unsigned const routing_id = (unsigned{pf.bus} << 8 | unsigned{pf.device} << 3 | pf.function) +
                                model.vf_offset + index * unsigned{model.vf_stride};
    return {pf.domain, static_cast<std::uint8_t>(routing_id >> 8),
            static_cast<std::uint8_t>(routing_id >> 3 & 0x1f),
            static_cast<std::uint8_t>(routing_id & 7)};
}

std::optional<int> refusal(DriverModel const& model, PfState const& pf, std::string_view member,
                           VfSpec const& spec) {
    auto const of = quirks::bit(enum_value<VfAttribute>(member).value());
    if ((model.left_out & of) != 0) return EOPNOTSUPP;
    for (auto const& quirk : quirks::table)
        if (refuses_as(model, quirk) && (quirk.of & of) != 0 &&
            applies(quirk.when, pf, member, spec))
            return quirk.error;
    return std::nullopt;
}

bool resets_vf(DriverModel const& model, std::string_view member) {
    auto const of = quirks::bit(enum_value<VfAttribute>(member).value());
    return (quirks::affected_by(quirks::Effect::resets_vf, model.driver) & of) != 0;
}

PfState make_pf(DriverModel const& model, std::string_view pci, std::string ifname) {
    PfState pf;
    pf.info.pci = *PciAddress::parse(pci);
    pf.info.ifname = ifname;
    pf.info.driver = model.driver;
    pf.info.link_layer = model.link_layer;
    if (model.link_layer == LinkLayer::infiniband)
        pf.info.port_guid = Guid{0x0002'c9ff'fe11'0000U + pf.info.pci.bus};  // IPoIB is loaded
    if (model.link_layer == LinkLayer::ethernet)
        pf.info.mac = MacAddress{{0x52, 0x54, 0x00, 0x00, pf.info.pci.bus, pf.info.pci.device}};
    pf.info.identity.mac = pf.info.mac;
    if (!pf.info.mac) pf.info.identity.guid = Guid{0x2c9b'b400'0000'0000U + pf.info.pci.bus};
    pf.info.total_vfs = 7;
    pf.drivers_autoprobe = true;
    pf.info.mtu = 1500;
    pf.info.up = true;
    pf.info.carrier = true;
    HostInterface interface;
    interface.id = {pf.info.pci, std::nullopt};
    interface.ifname = std::move(ifname);
    interface.up = true;
    interface.mtu = 1500;
    pf.interfaces.push_back(std::move(interface));
    return pf;
}

PfState make_igb_pf(std::string_view pci, std::string ifname) {
    auto pf = make_pf(driver_model("igb"), pci, std::move(ifname));
    pf.info.vendor_name = "Intel Corporation";
    pf.info.device_name = "82576 Gigabit Network Connection";
    return pf;
}

}  // namespace vfmgr
