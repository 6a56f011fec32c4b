// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/pf_view.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_arp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "vfmgr/kernel/interface_filter.hpp"
#include "vfmgr/kernel/pci.hpp"
#include "vfmgr/kernel/vf_files.hpp"

namespace vfmgr {
namespace {

// Queries only the given names: a host may have hundreds of other interfaces.
Result<std::optional<Netdev>> find_netdev(LinuxKernelRoots const& roots, NlSocket& socket,
                                          std::vector<std::string> const& names,
                                          PciAddress const& pf, Deadline deadline) {
    std::vector<Result<Netdev>> answers;
    for (auto const& name : names) answers.push_back(get_netdev(socket, name, deadline));
    std::vector<Netdev const*> in_its_folder;
    for (auto const& netdev : answers) {
        if (netdev)
            in_its_folder.push_back(&*netdev);
        else if (netdev.error().problem != Problem::not_found)  // that interface left just now
            return fail(netdev.error());
    }
    auto const* const own = own_netdev(roots, std::move(in_its_folder), pf);
    return own ? std::optional(*own) : std::nullopt;
}

// Reads the interface that the file was opened for, even if renamed since. Returns nothing when the
// interface is gone: kernfs fails with ENODEV.
std::string read_again(FileDescriptor const& uevent) {
    std::array<char, 256> buffer;
    auto const got = ::pread(uevent.get(), buffer.data(), buffer.size(), 0);
    return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : std::string();
}

// The format of net_sysfs: netdev_uevent().
bool names(std::string const& uevent, Netdev const& netdev) {
    return uevent.find(fmt::format("INTERFACE={}\nIFINDEX={}\n", netdev.name, netdev.ifindex)) !=
           std::string::npos;
}

}  // namespace

Result<OpenPf> OpenPf::open(LinuxKernelRoots const& roots, PciAddress const& pf,
                            Deadline deadline) {
    auto const path = pci_folder(roots, pf);
    FileDescriptor folder(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return fail(no_such_device(roots, pf, errno));
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    auto const found = netdevs_of(roots, pf);
    OpenPf open(std::move(socket), std::move(folder));
    VFMGR_TRY(open.netdev_, find_netdev(roots, open.socket_, found, pf, deadline));
    if (!open.netdev_ || found.size() != 1) return open;
    FileDescriptor uevent(
        ::open((path / "net" / found.front() / "uevent").c_str(), O_RDONLY | O_CLOEXEC));
    open.event_ifname_ = read_again(uevent);
    if (names(open.event_ifname_, *open.netdev_)) open.uevent_ = std::move(uevent);
    return open;
}

bool OpenPf::unchanged() const {
    return uevent_ && read_again(uevent_) == event_ifname_;
}

bool OpenPf::has_vf(std::uint16_t index) const {
    std::array<char, 1> target;
    auto const link = fmt::format("virtfn{}", index);
    return ::readlinkat(folder_.get(), link.c_str(), target.data(), target.size()) >= 0;
}

namespace {

// "pf0vf3", "c1pf0vf3", "pf0hpf", "pf0sf88": ports of the NIC's switch that represent functions.
// Since Linux 5.8 they are in the PF's net/ folder too (KERNEL.md#representors).
bool representor(Netdev const& netdev) {
    auto const& name = netdev.phys_port_name;
    return name.starts_with("pf") || (name.starts_with("c") && name.find("pf") != name.npos);
}

Netdev const* find_netdev(std::vector<Netdev> const& netdevs, std::string const& name) {
    auto const found = std::ranges::find(netdevs, name, &Netdev::name);
    return found == netdevs.end() ? nullptr : &*found;
}

// Finds a netdev of the PF's folder by number: it may have been renamed since they were listed.
Netdev const* find_netdev(LinuxKernelRoots const& roots, std::vector<Netdev> const& netdevs,
                          PciAddress const& pf, std::string const& name) {
    auto const ifindex = read_number(pci_folder(roots, pf) / "net" / name / "ifindex");
    return ifindex ? find_netdev(netdevs, std::optional(static_cast<int>(*ifindex)))
                   : find_netdev(netdevs, name);
}

// IPv6 lists a route to each address of the host in the main table; IPv4 keeps them apart.
bool own_address(NetworkSnapshot const& network, IpRoute const& route) {
    if (route.prefix.length != route.prefix.address.bits()) return false;
    auto const& addresses = network.host.addresses;
    return std::any_of(addresses.begin(), addresses.end(), [&](NetdevAddress const& each) {
        return each.address == route.prefix.address && each.ifindex == route.ifindex;
    });
}

std::optional<MacAddress> permanent_mac(NetworkSnapshot const& network, Netdev const& netdev,
                                        IpAddress const& address) {
    for (auto const& neighbour : network.neighbours)
        if (neighbour.ifindex == netdev.ifindex && neighbour.address == address &&
            permanent(neighbour))
            return neighbour.mac;
    return std::nullopt;
}

HostInterface view_interface(NetworkSnapshot const& network, InterfaceId const& id,
                             Netdev const& netdev) {
    HostInterface interface;
    interface.id = id;
    interface.ifname = netdev.name;
    interface.up = netdev.up;
    interface.mtu = netdev.mtu;
    interface.ours = ours(netdev);
    for (auto const& address : network.host.addresses) {
        if (address.ifindex != netdev.ifindex) continue;
        interface.addresses.push_back(address.address);
        interface.prefixes.push_back(network_of(address.address, address.prefix_length));
    }
    auto const filter = filter_at(network.filter, netdev);
    interface.filtered = filter.addresses;
    for (auto const& vm : filter.vms)
        interface.closed.push_back({vm.address, vm.mac, vm.responder, vm.guest_plane});
    for (auto const& route : network.routes)
        if (route.protocol == our_route_protocol && route.ifindex == netdev.ifindex &&
            route.prefix.length == route.prefix.address.bits())
            interface.peers.push_back(
                {route.prefix.address, permanent_mac(network, netdev, route.prefix.address)});
    return interface;
}

std::vector<HostInterface> view_interfaces(NetworkSnapshot const& network, PciAddress const& pf,
                                           Netdev const& netdev) {
    std::vector<HostInterface> interfaces{view_interface(network, {pf, std::nullopt}, netdev)};
    for (auto const& each : network.host.netdevs)
        if (each.vlan && each.parent_ifindex == netdev.ifindex)
            interfaces.push_back(view_interface(network, {pf, each.vlan}, each));
    std::sort(interfaces.begin(), interfaces.end(),
              [](HostInterface const& a, HostInterface const& b) { return a.id.vlan < b.id.vlan; });
    return interfaces;
}

VfState view_vf(LinuxKernelRoots const& roots, PfSources const& sources, PciAddress const& pf,
                std::uint16_t index, ListedVf const& listed) {
    auto const& pci = listed.pci;
    VfState vf;
    vf.index = index;
    vf.pci = pci;
    vf.driver = driver_of(roots, pci);
    vf.iommu_group = listed.vfio.group;
    if (auto const netdevs = netdevs_of(roots, pci); !netdevs.empty()) vf.ifname = netdevs.front();
    vf.settings = read_vf_files(roots, {pf, index}, pci);
    if (auto const found = sources.settings.find(index); found != sources.settings.end())
        vf.settings = overlay(vf.settings, found->second);
    auto const& ports = sources.eswitch.ports;
    if (auto const port = std::ranges::find(ports, index, &VfPort::vf); port != ports.end())
        vf.settings.roce = port->roce;
    vf.holders = holders_of(sources.holders, listed.vfio.numbers);
    // The group's node is there for each of its functions as soon as one is bound.
    if (listed.vfio.paths && bound_to_vfio(roots, pci)) vf.vfio = listed.vfio.paths;
    return vf;
}

// Without ib_ipoib an InfiniBand PF has no network device to read this from.
LinkLayer link_layer_of(LinuxKernelRoots const& roots, PciAddress const& pf,
                        std::string const& rdma_device) {
    auto const port = pci_folder(roots, pf) / "infiniband" / rdma_device / "ports/1";
    return read_text(port / "link_layer") == "InfiniBand" ? LinkLayer::infiniband
                                                          : LinkLayer::ethernet;
}

// The RDMA device's files have the GUID even without ib_ipoib.
std::optional<Guid> node_guid_of(LinuxKernelRoots const& roots, PciAddress const& pf,
                                 std::string const& rdma_device) {
    auto const text = read_text(pci_folder(roots, pf) / "infiniband" / rdma_device / "node_guid");
    auto const guid = text ? Guid::parse(*text) : fail(text.error());
    return guid && guid->value != 0 ? std::optional(*guid) : std::nullopt;
}

std::vector<RdmaListener> view_listeners(LinuxKernelRoots const& roots,
                                         NetworkSnapshot const& network,
                                         std::optional<std::string> const& device) {
    auto const found = device ? network.listeners.find(*device) : network.listeners.end();
    if (found == network.listeners.end()) return {};
    auto listeners = found->second;
    for (auto& each : listeners)
        if (each.pid) each.comm = process_name(roots, *each.pid);
    return listeners;
}

void add_netdev_facts(PfInfo& info, Netdev const& netdev) {
    info.identity.mac = netdev.permanent_mac;
    info.ifname = netdev.name;
    info.mac = netdev.mac;
    info.port_guid = netdev.port_guid;
    info.mtu = netdev.mtu;
    info.up = netdev.up;
    info.carrier = netdev.carrier;
    info.link_layer = link_layer_of(netdev);
}

}  // namespace

LinkLayer link_layer_of(Netdev const& netdev) {
    return netdev.hardware_type == ARPHRD_INFINIBAND ? LinkLayer::infiniband : LinkLayer::ethernet;
}

Netdev const* own_netdev(LinuxKernelRoots const& roots, std::vector<Netdev const*> in_its_folder,
                         PciAddress const& pf) {
    std::erase_if(in_its_folder, [](Netdev const* netdev) { return representor(*netdev); });
    if (in_its_folder.size() < 2) return in_its_folder.empty() ? nullptr : in_its_folder.front();
    // A card with one function and two ports (mlx4) has two devices.
    return *std::ranges::min_element(in_its_folder, {}, [&](Netdev const* netdev) {
        return read_number(pci_folder(roots, pf) / "net" / netdev->name / "dev_port").value_or(0);
    });
}

Netdev const* pf_netdev(LinuxKernelRoots const& roots, std::vector<Netdev> const& netdevs,
                        PciAddress const& pf) {
    std::vector<Netdev const*> in_its_folder;
    for (auto const& name : netdevs_of(roots, pf))
        if (auto const* const netdev = find_netdev(roots, netdevs, pf, name))
            in_its_folder.push_back(netdev);
    return own_netdev(roots, std::move(in_its_folder), pf);
}

Netdev const* interface_netdev(LinuxKernelRoots const& roots, std::vector<Netdev> const& netdevs,
                               InterfaceId const& interface) {
    auto const* const parent = pf_netdev(roots, netdevs, interface.pf);
    if (parent == nullptr || !interface.vlan) return parent;
    for (auto const& netdev : netdevs)
        if (netdev.vlan == interface.vlan && netdev.parent_ifindex == parent->ifindex)
            return &netdev;
    return nullptr;
}

Result<ListedVfs> list_vfs_with_nodes(LinuxKernelRoots const& roots, PciAddress const& pf) {
    auto const beside = roots_beside(roots, pf);
    VFMGR_TRY(auto const vfs, list_vfs(beside, pf));
    ListedVfs listed;
    for (auto const& [index, pci] : vfs)
        listed.emplace(index, ListedVf{pci, read_vfio_nodes(beside, pci)});
    return listed;
}

Result<PfState> view_pf(LinuxKernelRoots const& roots, DeviceBooks& books, PfSources const& sources,
                        PciAddress const& pf) {
    PfState state;
    state.info.pci = pf;
    state.info.eswitch_mode = sources.eswitch.mode;
    state.info.driver = driver_of(roots, pf).value_or("");
    state.info.identity.serial = books.vpd.serial_of(roots, pf);
    VFMGR_TRY(auto const named, books.names.look_up(roots, pf));
    state.info.vendor_name = named.vendor;
    state.info.device_name = named.device;
    state.info.pci_ids = named.ids;
    state.info.pcie_root = pcie_root_of(roots, pf);
    VFMGR_TRY(state.info.total_vfs, total_vfs(roots, pf));
    state.info.numa_node = numa_node_of(roots, pf);
    state.info.num_vfs = static_cast<std::uint16_t>(sources.vfs.size());
    state.drivers_autoprobe = read_drivers_autoprobe(roots, pf);
    auto const beside = roots_beside(roots, pf);
    for (auto const& [index, vf] : sources.vfs) {
        state.vfs.push_back(view_vf(beside, sources, pf, index, vf));
        if (auto methods = read_reset_methods(beside, vf.pci); !methods.empty())
            state.reset_methods.push_back({index, std::move(methods)});
    }
    if (!sources.vfs.empty())
        state.info.vfio_variant = books.vfio.variant_of(roots, sources.vfs.begin()->second.pci);
    // The device link is the only safe map between RDMA and network devices of hardware.
    if (auto const hardware = rdma_devices_of(roots, pf); !hardware.empty()) {
        state.info.rdma_device = hardware.front();
        state.info.link_layer = link_layer_of(roots, pf, hardware.front());
        if (state.info.link_layer == LinkLayer::infiniband)
            state.info.identity.guid = node_guid_of(roots, pf, hardware.front());
    }
    auto const* const netdev = pf_netdev(roots, sources.network.host.netdevs, pf);
    if (netdev == nullptr) return state;
    add_netdev_facts(state.info, *netdev);
    if (auto const* const controller =
            find_netdev(sources.network.host.netdevs, netdev->controller_ifindex))
        state.info.controller = controller->name;
    state.interfaces = view_interfaces(sources.network, pf, *netdev);
    state.listeners = view_listeners(roots, sources.network, state.info.rdma_device);
    if (state.info.rdma_device) return state;
    if (auto const* const soft = rdma_device_on(sources.network.rdma_devices, netdev->ifindex)) {
        state.info.rdma_device = soft->name;
        state.info.rdma_driver = soft->driver;
        state.listeners = view_listeners(roots, sources.network, state.info.rdma_device);
    }
    return state;
}

std::vector<HostRoute> view_routes(NetworkSnapshot const& network) {
    std::vector<HostRoute> routes;
    for (auto const& route : network.routes) {
        auto const* const netdev = find_netdev(network.host.netdevs, route.ifindex);
        bool const made_by_us =
            route.protocol == our_route_protocol || (netdev != nullptr && ours(*netdev));
        if (route.prefix.length == 0 || made_by_us || own_address(network, route)) continue;
        routes.push_back({route.prefix, netdev == nullptr ? std::string() : netdev->name});
    }
    return routes;
}

}  // namespace vfmgr
