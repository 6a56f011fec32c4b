// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/rdma_ports.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/text.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/netlink/rdma.hpp"

namespace vfmgr::checks {
namespace {

ByteView payload_bytes(std::string const& payload) {
    return std::as_bytes(std::span(payload));
}

// An SMI device is made from another, and shares its PCI function (Linux 6.11, or OFED).
bool may_be_smi(Machine const& machine, MachineRdmaDevice const& device) {
    auto const& all = machine.rdma_devices.peek();
    if (!all) return false;
    return std::ranges::any_of(*all, [&](MachineRdmaDevice const& one) {
        bool const shares = one.pci.peek() && one.pci.peek() == device.pci.peek();
        return one.name != device.name && (shares || !one.pci.is_read() || !device.pci.is_read());
    });
}

std::string parent_of(Machine const& machine, MachineRdmaDevice const& device) {
    if (!may_be_smi(machine, device)) return {};
    auto const answers = machine.facts.answers("RDMA_NLDEV_CMD_GET");
    if (!answers) return answers.error().absent() ? "" : "unknown";
    for (auto const& payload : *answers) {
        auto const reply = parse_rdma_device(payload_bytes(payload));
        if (reply && reply->name == device.name)
            return parse_rdma_parent(payload_bytes(payload)).value_or("");
    }
    return {};
}

// Queries RDMA netlink, which knows representors' ports too.
std::string netdev_of_port(Machine const& machine, std::string const& device, int port) {
    auto const answers = machine.facts.unnoted().answers("RDMA_NLDEV_CMD_PORT_GET " + device);
    if (!answers) return {};
    for (auto const& payload : *answers) {
        auto const reply = parse_rdma_port(payload_bytes(payload));
        if (reply && std::cmp_equal(reply->number, port)) return reply->ifname;
    }
    return {};
}

// Two ports of a ConnectX-3 are one PCI function, and dev_port distinguishes their netdevs; later
// cards have a function for each.
MachineNetdev const* netdev_by_port(std::vector<MachineNetdev const*> const& netdevs, int port) {
    if (netdevs.size() == 1) return netdevs.front();
    for (auto const* netdev : netdevs)
        if (netdev->dev_port() == port - 1) return netdev;
    return nullptr;
}

bool is_software(MachineRdmaDevice const& device) {
    // rxe has no type and no PCI function, and names its netdev; some recordings have no links.
    if (!device.parent().empty()) return true;
    return !device.pci() && device.hca_type().empty() && device.hca_type.is_read();
}

void find_netdev_of(Machine const& machine, RdmaPortView& view) {
    view.netdev_name = netdev_of_port(machine, view.device->name, view.port->number);
    if (view.software && view.netdev_name.empty()) view.netdev_name = view.device->parent();
    auto const on_pci =
        view.pci ? netdevs_of(machine, view.pci->address) : std::vector<MachineNetdev const*>();
    // For RoCE LAG the kernel names the bond; the PF's own netdev is the one in it.
    auto const* const reply = find_netdev(machine, view.netdev_name);
    if (!view.software && (!reply || (!reply->pci() && !is_representor(*reply))))
        if (auto const* const own = netdev_by_port(on_pci, view.port->number)) {
            view.netdev = own;
            view.netdev_name = own->name;
            return;
        }
    if (view.netdev_name.empty() && !view.port->gids().empty())
        view.netdev_name = view.port->gids().front().netdev();
    view.netdev = find_netdev(machine, view.netdev_name);
    // A port without a netdev here may have one all the same, if the kernel's answer is unread.
    if (!view.netdev && !view.infiniband())
        static_cast<void>(machine.facts.answers("RDMA_NLDEV_CMD_PORT_GET " + view.device->name));
}

bool is_link_local(IpAddress const& address) {
    return address.family == IpAddress::Family::v6 && address.octets[0] == 0xfe &&
           (address.octets[1] & 0xc0U) == 0x80;
}

}  // namespace

std::string name_of(RdmaPortView const& view) {
    return fmt::format("{}/{}", view.device->name, view.port->number);
}

std::string folder_of(RdmaPortView const& view) {
    return fmt::format("/sys/class/infiniband/{}/ports/{}", view.device->name, view.port->number);
}

std::vector<RdmaPortView> rdma_ports(Machine const& machine) {
    std::vector<RdmaPortView> views;
    if (!machine.rdma_devices()) return views;
    for (auto const& device : *machine.rdma_devices())
        for (auto const& port : device.ports) {
            RdmaPortView view;
            view.device = &device;
            view.port = &port;
            view.software = is_software(device);
            view.parent = parent_of(machine, device);
            if (device.pci() && !view.software) view.pci = find_pci(machine, *device.pci());
            if (view.parent.empty()) find_netdev_of(machine, view);
            views.push_back(std::move(view));
        }
    return views;
}

std::vector<RdmaPortView> nic_ports(Machine const& machine) {
    auto views = rdma_ports(machine);
    std::erase_if(views, [](auto const& view) { return view.software || !view.parent.empty(); });
    return views;
}

bool is_iwarp(Machine const& machine, MachineRdmaDevice const& device) {
    auto const type = machine.facts.text("/sys/class/infiniband/" + device.name + "/node_type");
    return type && type->starts_with('4');  // "4: RNIC"
}

std::optional<IpAddress> gid_address(std::string_view gid) {
    auto const v6 = IpAddress::parse(gid);
    if (!v6 || v6->family != IpAddress::Family::v6) return std::nullopt;
    IpAddress v4;
    std::ranges::copy_n(v6->octets.begin() + 12, 4, v4.octets.begin());
    return v4.gid() == v6->octets ? v4 : *v6;
}

MachineNetdev const* find_netdev(Machine const& machine, std::string_view name) {
    if (!machine.netdevs() || name.empty()) return nullptr;
    auto const found = std::ranges::find(*machine.netdevs(), name, &MachineNetdev::name);
    return found == machine.netdevs()->end() ? nullptr : &*found;
}

std::optional<std::uint16_t> represented_vf(MachineNetdev const& netdev) {
    std::string_view name = netdev.phys_port_name();
    auto const vf = name.rfind("vf");
    auto const pf = name.find("pf");
    if (vf == name.npos || pf == name.npos || pf + 2 > vf) return std::nullopt;
    auto const index = parse_digits(name.substr(vf + 2), {.max = UINT16_MAX});
    return index ? std::optional(static_cast<std::uint16_t>(*index)) : std::nullopt;
}

bool is_representor(MachineNetdev const& netdev) {
    // "p0" is the port itself; "pf0", "pf0vf1" and "pf0sf2" represent other functions.
    return contains(netdev.phys_port_name(), "pf");
}

std::vector<MachineNetdev const*> netdevs_of(Machine const& machine, PciAddress const& pci) {
    std::vector<MachineNetdev const*> found;
    if (!machine.netdevs()) return found;
    for (auto const& netdev : *machine.netdevs())
        if (netdev.pci() == pci && !is_representor(netdev)) found.push_back(&netdev);
    return found;
}

std::vector<std::string> uppers_of(Machine const& machine, std::string_view netdev) {
    std::vector<std::string> uppers;
    constexpr std::string_view folder = "/sys/class/net/";
    auto const end = fmt::format("/lower_{}", netdev);
    for (auto const& [path, link] : machine.facts.links("/sys/class/net/*/lower_*"))
        if (path.ends_with(end))
            uppers.emplace_back(
                path.substr(folder.size(), path.size() - folder.size() - end.size()));
    return uppers;
}

Known<std::vector<NetdevAddress>> addresses_of(Machine const& machine) {
    auto const answers = machine.facts.answers("RTM_GETADDR");
    if (!answers) return tl::unexpected(answers.error());
    std::vector<NetdevAddress> all;
    for (auto const& payload : *answers)
        if (auto const address = parse_address(payload_bytes(payload))) all.push_back(*address);
    return all;
}

std::vector<NetdevAddress> addresses_on(Machine const& machine, MachineNetdev const& netdev) {
    auto const all = addresses_of(machine);
    std::vector<NetdevAddress> found;
    if (!all) return found;
    for (auto const& one : *all)
        if (one.ifindex == netdev.ifindex() && !is_link_local(one.address)) found.push_back(one);
    return found;
}

std::string use_of(Machine const& machine, RdmaPortView const& view) {
    if (view.pci && !view.pci->vfs().empty())
        return fmt::format("it has {} VFs", view.pci->vfs().size());
    if (machine.kind == CheckedMachine::guest) return "it is attached to this VM";
    if (!view.netdev) return {};
    auto const& name = view.netdev->name;
    if (view.netdev->master()) return fmt::format("{} is in {}", name, *view.netdev->master());
    if (auto const addresses = addresses_on(machine, *view.netdev); !addresses.empty())
        return fmt::format("{} has the address {}", name, to_string(addresses.front().address));
    if (auto const uppers = uppers_of(machine, name); !uppers.empty())
        return fmt::format("{} is on {}", uppers.front(), name);
    return {};
}

}  // namespace vfmgr::checks
