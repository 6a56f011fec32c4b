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

// What drivers refuse alike: GUIDs (vfmgr/kernel/KERNEL.md#infiniband-vfs), multicast MACs
// (KERNEL.md#mac-addresses). ixgbe takes query_rss and mlx5 divides its vectors: left out, no other
// driver does (unverified).
std::vector<Refusal> const rare = {{"node_guid", When::always, EOPNOTSUPP},
                                   {"port_guid", When::always, EOPNOTSUPP},
                                   {"query_rss", When::always, EOPNOTSUPP},
                                   {"msix_vectors", When::always, EOPNOTSUPP}};
std::vector<Refusal> const everywhere = {{"mac", When::multicast, EINVAL}};

std::vector<Refusal> switchdev(std::vector<Refusal> own) {
    own.insert(own.end(), rare.begin(), rare.end());
    return own;
}

// RoCE is set at a VF's port, which only a switch in switchdev mode has.
std::vector<Refusal> ethernet(std::vector<Refusal> own) {
    own.push_back({"roce", When::always, EOPNOTSUPP});
    return switchdev(std::move(own));
}

// Each row as in vfmgr/kernel/KERNEL.md#what-drivers-refuse. "unverified": neither from that
// document nor observed in the lab. The order in which a node and a port GUID must be sent shows
// below this seam, in vfmgr/kernel.
std::vector<DriverModel> const models = {
    // QEMU's igb NIC with Linux's igb driver, as in the lab.
    {.name = "igb",
     .driver = "igb",
     .vf_driver = "igbvf",
     .new_vf = ethernet_report(),
     .refused = ethernet({{"link_state", When::always, EOPNOTSUPP},
                          {"vlan", When::dot1ad, EPROTONOSUPPORT},
                          {"min_tx_rate_mbps", When::above_zero, EINVAL},
                          {"max_tx_rate_mbps", When::no_carrier, EINVAL}})},
    // Older versions refuse the zero MAC (unverified, as are offset and stride).
    {.name = "ixgbe",
     .driver = "ixgbe",
     .vf_driver = "ixgbevf",
     .new_vf = ethernet_report(),
     .refused = ethernet({{"mac", When::zero, EINVAL},
                          {"vlan", When::dot1ad, EPROTONOSUPPORT},
                          {"min_tx_rate_mbps", When::above_zero, EINVAL},
                          {"max_tx_rate_mbps", When::no_carrier, EINVAL}})},
    // As ixgbe for the zero MAC, offset and stride.
    {.name = "i40e",
     .driver = "i40e",
     .vf_driver = "iavf",
     .new_vf = ethernet_report(),
     .refused = ethernet({{"mac", When::zero, EINVAL},
                          {"vlan", When::dot1ad, EPROTONOSUPPORT},
                          {"min_tx_rate_mbps", When::above_zero, EINVAL}}),
     .vf_offset = 16,
     .vf_stride = 1},
    // 802.1ad only in its double VLAN mode. Unverified: accepts both rates.
    {.name = "ice",
     .driver = "ice",
     .vf_driver = "iavf",
     .new_vf = ethernet_report(),
     .refused = ethernet({{"vlan", When::dot1ad, EPROTONOSUPPORT}}),
     .vf_offset = 8,
     .vf_stride = 1},
    // Makes no VFs while the PF is down, and the write of the count succeeds even so. Unverified:
    // older versions then refuse every setting; Linux 6.1's does not.
    {.name = "bnxt_en",
     .driver = "bnxt_en",
     .vf_driver = "bnxt_en",
     .new_vf = ethernet_report(),
     .refused = ethernet({{"", When::pf_down, EINVAL}, {"vlan", When::dot1ad, EPROTONOSUPPORT}}),
     .makes_vfs_only_when_up = true},
    // Only the guest sees the node GUID that it derives from the admin MAC.
    {.name = "mlx5",
     .driver = "mlx5_core",
     .vf_driver = "mlx5_core",
     .new_vf = ethernet_report(),
     .refused = ethernet({{"vlan", When::dot1ad, EPROTONOSUPPORT}}),
     .vf_offset = 2,
     .vf_stride = 1},
    // VLAN 0 is accepted, for libvirt. Its VFs have ports, whose functions have RoCE
    // (KERNEL.md#switch-and-devlink). Unverified: refuses rates; Linux 6.1's does not.
    {.name = "mlx5_switchdev",
     .driver = "mlx5_core",
     .vf_driver = "mlx5_core",
     .new_vf = switchdev_report(),
     .refused = switchdev({{"vlan", When::tagged, EOPNOTSUPP},
                           {"trust", When::always, EOPNOTSUPP},
                           {"min_tx_rate_mbps", When::always, EOPNOTSUPP},
                           {"max_tx_rate_mbps", When::always, EOPNOTSUPP}}),
     .vf_offset = 2,
     .vf_stride = 1},
    // Its netdev is IPoIB's: GUIDs and link state, nothing else. GUIDs outlive VFs
    // (KERNEL.md#guids-outlive-vfs).
    {.name = "mlx5_infiniband",
     .driver = "mlx5_core",
     .vf_driver = "mlx5_core",
     .new_vf = infiniband_report(),
     .refused = {{"mac", When::always, EOPNOTSUPP},
                 {"vlan", When::always, EOPNOTSUPP},
                 {"min_tx_rate_mbps", When::always, EOPNOTSUPP},
                 {"max_tx_rate_mbps", When::always, EOPNOTSUPP},
                 {"spoofchk", When::always, EOPNOTSUPP},
                 {"trust", When::always, EOPNOTSUPP},
                 {"query_rss", When::always, EOPNOTSUPP},
                 {"msix_vectors", When::always, EOPNOTSUPP},
                 {"roce", When::always, EOPNOTSUPP}},
     .link_layer = LinkLayer::infiniband,
     .vf_offset = 2,
     .vf_stride = 1,
     .keeps_guids = true},
    // No driver: accepts everything and reports it, GUIDs too.
    {.name = "obliging",
     .driver = "obliging",
     .vf_driver = "mlx5_core",
     .new_vf = full_report(),
     .refused = {}},
};

bool zero(std::string_view member, VfSpec const& spec) {
    if (member == "mac") return spec.mac->zero();
    if (member == "min_tx_rate_mbps") return *spec.min_tx_rate_mbps == 0;
    return false;
}

bool applies(Refusal const& row, PfState const& pf, std::string_view member, VfSpec const& spec) {
    if (!row.member.empty() && row.member != member) return false;
    switch (row.when) {
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
        case When::no_carrier:
            return !pf.info.carrier;
        case When::pf_down:
            return !pf.info.up;
    }
    return false;
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
    for (auto const* rows : {&model.refused, &everywhere})
        for (auto const& row : *rows)
            if (applies(row, pf, member, spec)) return row.error;
    return std::nullopt;
}

PfState make_pf(DriverModel const& model, std::string_view pci, std::string ifname) {
    PfState pf;
    pf.info.pci = *PciAddress::parse(pci);
    pf.info.ifname = ifname;
    pf.info.driver = model.driver;
    pf.info.link_layer = model.link_layer;
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
