// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/rdma_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "api/types/text.hpp"
#include "vfmgr/machine/rdma_ports.hpp"

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
           (device.vendor() == vendor_mellanox || !device.rdma_devices().empty() ||
            (device.driver() && std::ranges::find(drivers, *device.driver()) != drivers.end()));
}

std::optional<VfId> vf_of(Machine const& machine, PciDevice const& device) {
    auto const* const pf = device.pf() ? find_pci(machine, *device.pf()) : nullptr;
    if (!pf) return std::nullopt;
    for (auto const& [index, address] : pf->vfs())
        if (address == device.address) return VfId{pf->address, index};
    return std::nullopt;
}

void describe_pci(Machine const& machine, PciDevice const& device, RdmaName& name) {
    name.pci = device.address;
    name.driver = device.driver();
    name.numa_node = device.numa_node();
    name.vf = vf_of(machine, device);
    if (!name.vf || !machine.netdevs()) return;
    for (auto const& netdev : *machine.netdevs())
        if (netdev.pci() == name.vf->pf && represented_vf(netdev) == name.vf->index)
            name.represented_by = netdev.name;
}

void describe_netdev(MachineNetdev const& netdev, RdmaName& name) {
    name.ifname = netdev.name;
    name.netdev_up = netdev.up();
    name.master = netdev.master();
    name.phys_port_name = unless_empty(netdev.phys_port_name());
    auto const vf = represented_vf(netdev);
    if (vf && netdev.pci()) name.represents = VfId{*netdev.pci(), *vf};
}

void describe_port(RdmaPortView const& view, RdmaName& name) {
    name.kind = !view.parent.empty() ? RdmaKind::smi
                : view.software      ? RdmaKind::software
                                     : RdmaKind::nic;
    name.rdma_device = view.device->name;
    name.port = view.port->number;
    name.state = unless_empty(view.port->state());
    name.phys_state = unless_empty(view.port->phys_state());
    if (view.ethernet()) name.link_layer = LinkLayer::ethernet;
    if (view.infiniband()) name.link_layer = LinkLayer::infiniband;
    name.rate = unless_empty(view.port->rate());
    name.hca_type = unless_empty(view.device->hca_type());
    name.firmware = unless_empty(view.device->firmware());
    name.board_id = unless_empty(view.device->board_id());
    name.node_guid = view.device->node_guid();
    for (auto const& gid : view.port->gids()) {
        RdmaGid entry{gid.index, gid.gid, gid.type(), std::nullopt, unless_empty(gid.netdev())};
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
        view.pci ? view.pci
                 : (view.netdev && view.netdev->pci() ? find_pci(machine, *view.netdev->pci())
                                                      : nullptr);
    if (pci) describe_pci(machine, *pci, name);
    return name;
}

// PFs of one card in one bond share an RDMA device, which only one of them has.
RdmaName const* lag_device_of(Machine const& machine, std::vector<RdmaName> const& names,
                              PciDevice const& device) {
    for (auto const* netdev : netdevs_of(machine, device.address)) {
        if (!netdev->master()) continue;
        for (auto const& name : names)
            if (name.kind == RdmaKind::nic && name.master == netdev->master() && name.pci &&
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
    auto const* const pf = device.pf() ? find_pci(machine, *device.pf()) : nullptr;
    return offers_rdma(pf ? *pf : device);
}

}  // namespace

std::vector<RdmaName> rdma_names(Machine const& machine) {
    std::vector<RdmaName> names;
    for (auto const& view : rdma_ports(machine)) names.push_back(name_of_port(machine, view));
    if (machine.pci()) {
        auto const ports = names;
        for (auto const& device : *machine.pci())
            if (is_network(device) && is_of_rdma_nic(machine, device) &&
                !has_row(ports, device.address))
                names.push_back(name_of_function(machine, ports, device));
    }
    std::ranges::sort(names, {}, [](RdmaName const& name) {
        return std::tuple(!name.pci, name.pci.value_or(PciAddress{}), name.rdma_device, name.port);
    });
    return names;
}

// Prints the names as tables, with as few columns as the machine needs.

namespace {

using Row = std::vector<std::string>;

// Makes columns as wide as their longest text; leaves out columns that are empty in all rows.
std::string laid_out(std::vector<Row> const& rows) {
    std::vector<std::size_t> widths(rows.front().size());
    std::vector<bool> used(rows.front().size());
    for (auto const& row : rows)
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
            used[i] = used[i] || (&row != &rows.front() && !row[i].empty());
        }
    std::string text;
    for (auto const& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i)
            if (used[i]) line += fmt::format("{:<{}}  ", row[i].empty() ? "-" : row[i], widths[i]);
        text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    }
    return text;
}

std::string device_text(RdmaName const& name) {
    return name.rdma_device.empty() ? "" : fmt::format("{}/{}", name.rdma_device, name.port);
}

std::string netdev_text(RdmaName const& name) {
    if (!name.ifname) return {};
    auto const state = !name.netdev_up ? "" : *name.netdev_up ? " (up)" : " (down)";
    return fmt::format("{}{}{}", *name.ifname, name.master ? " in " + *name.master : "", state);
}

std::string vf_text(RdmaName const& name) {
    if (name.represents) return fmt::format("stands for {}", to_string(*name.represents));
    if (!name.vf) return {};
    return to_string(*name.vf) + (name.represented_by ? " by " + *name.represented_by : "");
}

std::string state_text(RdmaName const& name) {
    if (!name.state) return {};
    // ACTIVE and LinkUp mean the same.
    if (*name.state == "ACTIVE" || !name.phys_state) return *name.state;
    return fmt::format("{} ({})", *name.state, *name.phys_state);
}

Row row_of(RdmaName const& name) {
    auto const rate = name.kind == RdmaKind::software ? "" : name.rate.value_or("");
    return {device_text(name),
            netdev_text(name),
            name.pci ? to_string(*name.pci) : "",
            vf_text(name),
            state_text(name),
            name.link_layer ? std::string(enum_name(*name.link_layer)) : "",
            rate,
            name.kind == RdmaKind::software ? "software"
            : name.kind == RdmaKind::smi    ? "smi"
                                            : name.driver.value_or(""),
            name.numa_node ? fmt::format("{}", *name.numa_node) : "",
            name.hca_type.value_or(""),
            name.firmware.value_or(""),
            name.board_id.value_or("")};
}

std::string gids_table(std::vector<RdmaName> const& names) {
    std::vector<Row> rows{{"RDMA", "INDEX", "GID", "ADDRESS", "TYPE", "IFNAME"}};
    std::set<std::string> listed;  // RoCE LAG has a row for each of its PFs
    for (auto const& name : names) {
        if (!listed.insert(device_text(name)).second) continue;
        for (auto const& gid : name.gids)
            rows.push_back({device_text(name), fmt::format("{}", gid.index), gid.gid,
                            gid.address ? to_string(*gid.address) : "", gid.type,
                            gid.ifname.value_or("")});
    }
    return rows.size() == 1 ? "no RDMA port has a GID\n" : laid_out(rows);
}

}  // namespace

std::string rdma_table(std::vector<RdmaName> const& names, RdmaTable table) {
    if (table == RdmaTable::gids) return gids_table(names);
    if (names.empty()) return "no RDMA device and no NIC that could have one\n";
    std::vector<Row> rows{{"RDMA", "IFNAME", "PCI", "VF", "STATE", "LINK", "RATE", "DRIVER", "NUMA",
                           "TYPE", "FIRMWARE", "BOARD"}};
    for (auto const& name : names) rows.push_back(row_of(name));
    return laid_out(rows);
}

}  // namespace vfmgr::checks
