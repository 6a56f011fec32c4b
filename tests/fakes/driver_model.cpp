// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/driver_model.hpp"

#include <cerrno>

namespace vfmgr {

DriverModel DriverModel::igb() {
    DriverModel model;
    model.new_vf.mac = MacAddress{};
    model.new_vf.vlan = Vlan{};
    model.new_vf.spoofchk = true;
    model.new_vf.trust = false;
    // igb knows no link state, but the kernel reports what it zeroed: auto.
    model.new_vf.link_state = LinkState::auto_;
    model.new_vf.min_tx_rate_mbps = 0;
    model.new_vf.max_tx_rate_mbps = 0;
    model.refused = {{"link_state", EOPNOTSUPP},
                     {"query_rss", EOPNOTSUPP},
                     {"node_guid", EOPNOTSUPP},
                     {"port_guid", EOPNOTSUPP},
                     {"msix_vectors", EOPNOTSUPP}};
    model.refuses_8021ad = true;
    model.refuses_min_rate_above_zero = true;
    model.needs_carrier_for_max_rate = true;
    return model;
}

DriverModel DriverModel::obliging() {
    auto model = igb();
    model.vf_driver = "mlx5_core";
    model.new_vf.node_guid = Guid{};
    model.new_vf.port_guid = Guid{};
    model.refused.clear();
    model.refuses_8021ad = false;
    model.refuses_min_rate_above_zero = false;
    model.needs_carrier_for_max_rate = false;
    return model;
}

PciAddress vf_address(DriverModel const& model, PciAddress const& pf, std::uint16_t index) {
    unsigned const routing_id = (unsigned{pf.bus} << 8 | unsigned{pf.device} << 3 | pf.function) +
                                model.vf_offset + index * unsigned{model.vf_stride};
    return {pf.domain, static_cast<std::uint8_t>(routing_id >> 8),
            static_cast<std::uint8_t>(routing_id >> 3 & 0x1f),
            static_cast<std::uint8_t>(routing_id & 7)};
}

std::optional<int> refusal(DriverModel const& model, PfState const& pf, std::string_view member,
                           VfSpec const& wish) {
    if (auto const named = model.refused.find(std::string(member)); named != model.refused.end())
        return named->second;
    if (member == "mac" && wish.mac->multicast()) return EINVAL;
    if (member == "vlan" && wish.vlan->proto == VlanProtocol::dot1ad && model.refuses_8021ad)
        return EPROTONOSUPPORT;
    if (member == "min_tx_rate_mbps" && *wish.min_tx_rate_mbps > 0 &&
        model.refuses_min_rate_above_zero)
        return EINVAL;
    if (member == "max_tx_rate_mbps" && !pf.info.carrier && model.needs_carrier_for_max_rate)
        return EINVAL;
    return std::nullopt;
}

PfState make_igb_pf(std::string_view pci, std::string ifname) {
    PfState pf;
    pf.info.pci = *PciAddress::parse(pci);
    pf.info.ifname = ifname;
    pf.info.driver = "igb";
    pf.info.vendor_name = "Intel Corporation";
    pf.info.device_name = "82576 Gigabit Network Connection";
    pf.info.mac = MacAddress{{0x52, 0x54, 0x00, 0x00, pf.info.pci.bus, pf.info.pci.device}};
    pf.info.total_vfs = 7;
    pf.info.mtu = 1500;
    pf.info.up = true;
    pf.info.carrier = true;
    LegState leg;
    leg.id = {pf.info.pci, std::nullopt};
    leg.ifname = std::move(ifname);
    leg.up = true;
    leg.mtu = 1500;
    pf.legs.push_back(std::move(leg));
    return pf;
}

}  // namespace vfmgr
