// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/rdma_names.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "api/types/text.hpp"
#include "vfmgr/checks/rdma_ports.hpp"

namespace vfmgr::checks {
namespace {

std::optional<std::string> unless_empty(std::string const& text) {
    return text.empty() ? std::nullopt : std::optional(text);
}

// Drivers of PFs that offer RDMA if the driver's RDMA half is there.
bool offers_rdma(PciDevice const& device) {
    static constexpr std::array<std::string_view, 8> drivers{
        "mlx5_core", "mlx4_core", "ice", "bnxt_en", "qede", "cxgb4", "hns3", "mana"};
    return is_network(device) &&
           (device.vendor == vendor_mellanox || !device.rdma_devices.empty() ||
            (device.driver && std::ranges::find(drivers, *device.driver) != drivers.end()));
}

std::optional<VfId> vf_of(Machine const& machine, PciDevice const& device) {
    auto const* const pf = device.pf ? find_pci(machine, *device.pf) : nullptr;
    if (!pf) return std::nullopt;
    for (auto const& [index, address] : pf->vfs)
        if (address == device.address) return VfId{pf->address, index};
    return std::nullopt;
}

void describe_pci(Machine const& machine, PciDevice const& device, RdmaName& name) {
    name.pci = device.address;
    name.driver = device.driver;
    name.numa_node = device.numa_node;
    name.vf = vf_of(machine, device);
    if (!name.vf || !machine.netdevs) return;
    for (auto const& netdev : *machine.netdevs)
        if (netdev.pci == name.vf->pf && represented_vf(netdev) == name.vf->index)
            name.represented_by = netdev.name;
}

void describe_netdev(MachineNetdev const& netdev, RdmaName& name) {
    name.ifname = netdev.name;
    name.netdev_up = netdev.up;
    name.master = netdev.master;
    name.phys_port_name = unless_empty(netdev.phys_port_name);
    auto const vf = represented_vf(netdev);
    if (vf && netdev.pci) name.represents = VfId{*netdev.pci, *vf};
}

void describe_port(RdmaPortView const& view, RdmaName& name) {
    name.kind = !view.parent.empty() ? RdmaKind::smi
                : view.software      ? RdmaKind::software
                                     : RdmaKind::nic;
    name.rdma_device = view.device->name;
    name.port = view.port->number;
    name.state = unless_empty(view.port->state);
    name.phys_state = unless_empty(view.port->phys_state);
    if (view.ethernet()) name.link_layer = LinkLayer::ethernet;
    if (view.infiniband()) name.link_layer = LinkLayer::infiniband;
    name.rate = unless_empty(view.port->rate);
    name.hca_type = unless_empty(view.device->hca_type);
    name.firmware = unless_empty(view.device->firmware);
    name.board_id = unless_empty(view.device->board_id);
    name.node_guid = view.device->node_guid;
    for (auto const& gid : view.port->gids) {
        RdmaGid entry{gid.index, gid.gid, gid.type, std::nullopt, unless_empty(gid.netdev)};
        if (auto const address = view.ethernet() ? gid_address(gid.gid) : std::nullopt)
            entry.address = *address;
        name.gids.push_back(std::move(entry));
    }
}

RdmaName name_of_port(Machine const& machine, RdmaPortView const& view) {
    RdmaName name;
    describe_port(view, name);
    if (view.netdev)
        describe_netdev(*view.netdev, name);
    else
        name.ifname = unless_empty(view.netdev_name);
    auto const* const pci =
        view.pci
            ? view.pci
            : (view.netdev && view.netdev->pci ? find_pci(machine, *view.netdev->pci) : nullptr);
    if (pci) describe_pci(machine, *pci, name);
    return name;
}

// PFs of one card in one bond share an RDMA device, which only one of them has.
RdmaName const* lag_device_of(Machine const& machine, std::vector<RdmaName> const& names,
                              PciDevice const& device) {
    for (auto const* netdev : netdevs_of(machine, device.address)) {
        if (!netdev->master) continue;
        for (auto const& name : names)
            if (name.kind == RdmaKind::nic && name.master == netdev->master && name.pci &&
                name.pci->domain == device.address.domain && name.pci->bus == device.address.bus)
                return &name;
    }
    return nullptr;
}

RdmaName name_of_function(Machine const& machine, std::vector<RdmaName> const& names,
                          PciDevice const& device) {
    RdmaName name;
    if (auto const* const lag = lag_device_of(machine, names, device)) name = *lag;
    describe_pci(machine, device, name);
    name.ifname.reset();
    name.netdev_up.reset();
    if (auto const netdevs = netdevs_of(machine, device.address); !netdevs.empty())
        describe_netdev(*netdevs.front(), name);
    return name;
}

bool has_row(std::vector<RdmaName> const& names, PciAddress const& pci) {
    return std::ranges::any_of(names, [&](RdmaName const& name) {
        return name.pci == pci && name.kind != RdmaKind::software;
    });
}

bool is_of_rdma_nic(Machine const& machine, PciDevice const& device) {
    auto const* const pf = device.pf ? find_pci(machine, *device.pf) : nullptr;
    return offers_rdma(pf ? *pf : device);
}

}  // namespace

std::vector<RdmaName> rdma_names(Machine const& machine) {
    std::vector<RdmaName> names;
    for (auto const& view : rdma_ports(machine)) names.push_back(name_of_port(machine, view));
    if (machine.pci) {
        auto const ports = names;
        for (auto const& device : *machine.pci)
            if (is_network(device) && is_of_rdma_nic(machine, device) &&
                !has_row(ports, device.address))
                names.push_back(name_of_function(machine, ports, device));
    }
    std::ranges::sort(names, {}, [](RdmaName const& name) {
        return std::tuple(!name.pci, name.pci.value_or(PciAddress{}), name.rdma_device, name.port);
    });
    return names;
}

}  // namespace vfmgr::checks
