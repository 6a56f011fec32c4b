// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/rdma_links.hpp"

#include <fmt/format.h>
#include <linux/if_arp.h>

#include <algorithm>
#include <fstream>

#include "vfmgr/kernel/steps.hpp"
#include "vfmgr/plan/rdma_links.hpp"

namespace vfmgr {
namespace {

Result<HostNetdevs> read_with(NlSocket& socket, Deadline deadline) {
    HostNetdevs host;
    VFMGR_TRY(host.netdevs, list_netdevs(socket, deadline));
    VFMGR_TRY(host.addresses, list_addresses(socket, deadline));
    return host;
}

Result<void> read_rdma(NetworkSnapshot& snapshot, Deadline deadline) {
    auto rdma = NlSocket::open(NlProtocol::rdma);
    if (!rdma && rdma.error().problem == Problem::unsupported) return {};
    if (!rdma) return fail(std::move(rdma).error());
    VFMGR_TRY(snapshot.rdma_devices, list_rdma_devices(*rdma, deadline));
    for (auto const& device : snapshot.rdma_devices) {
        auto listeners = list_cm_listeners(*rdma, device, deadline);
        if (!listeners) {  // fails, for example, for a device that has gone since
            VFMGR_TRY(auto const now, list_rdma_devices(*rdma, deadline));
            if (std::ranges::find(now, device.index, &RdmaDevice::index) != now.end())
                return fail(std::move(listeners).error());
        } else if (!listeners->empty()) {
            snapshot.listeners[device.name] = std::move(*listeners);
        }
    }
    return {};
}

}  // namespace

Netdev const* find_netdev(std::vector<Netdev> const& netdevs, std::optional<int> ifindex) {
    auto const found = std::ranges::find(netdevs, ifindex, &Netdev::ifindex);
    return found == netdevs.end() ? nullptr : &*found;
}

Result<HostNetdevs> read_host_netdevs(Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    return read_with(socket, deadline);
}

Result<NetworkSnapshot> take_snapshot(Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    NetworkSnapshot snapshot;
    VFMGR_TRY(snapshot.host, read_with(socket, deadline));
    VFMGR_TRY(snapshot.routes, list_routes(socket, deadline));
    VFMGR_TRY(snapshot.neighbours, list_neighbours(socket, deadline));
    VFMGR_CHECK(read_rdma(snapshot, deadline));
    VFMGR_TRY(snapshot.filter, read_packet_filter(deadline));
    return snapshot;
}

namespace {

std::optional<SoftRdmaType> soft_type(RdmaDevice const& device) {
    return device.driver ? enum_value<SoftRdmaType>(*device.driver) : std::nullopt;
}

NetdevState state_of(std::vector<Netdev> const& all, Netdev const& netdev) {
    NetdevState state;
    state.ethernet = netdev.hardware_type == ARPHRD_ETHER;
    state.loopback = netdev.hardware_type == ARPHRD_LOOPBACK;
    state.up = netdev.up;
    if (netdev.controller_ifindex) {
        auto const* const controller = find_netdev(all, netdev.controller_ifindex);
        state.controller = controller ? controller->name : "another device";
    }
    if (netdev.kind == "vlan") {
        auto const* const parent = find_netdev(all, netdev.parent_ifindex);
        state.parent = parent ? parent->name : "";
    }
    if (auto const pci = PciAddress::parse(netdev.parent_device)) state.pci = *pci;
    if (state.ethernet) state.mac = netdev.mac;
    return state;
}

void name_processes(LinuxKernelRoots const& roots, std::vector<RdmaUser>& users) {
    for (auto& user : users)
        if (user.pid) user.comm = process_name(roots, *user.pid);
}

// Skips the users of hardware: they don't matter here, and a NIC may have thousands of queue pairs.
ObservedRdmaLink observe_link(LinuxKernelRoots const& roots, NlSocket& rdma,
                              std::vector<Netdev> const& netdevs, RdmaDevice const& device,
                              Deadline deadline) {
    ObservedRdmaLink observed;
    observed.type = soft_type(device);
    for (auto const& port : device.ports) {
        auto const* const netdev = find_netdev(netdevs, port.ifindex);
        if (netdev && !observed.ifname) observed.ifname = netdev->name;
        observed.active = observed.active || port.state == rdma_port_active;
    }
    if (!observed.type) return observed;
    auto users = list_rdma_users(rdma, device, deadline);
    if (!users) {
        observed.users_unknown = detail_with_causes(users.error());
        return observed;
    }
    name_processes(roots, *users);
    observed.users = std::move(*users);
    return observed;
}

// "alias rdma-link-rxe rdma_rxe" in modules.alias; modprobe treats "-" and "_" alike.
bool names_alias(std::string_view line, std::string_view alias) {
    constexpr std::string_view keyword = "alias ";
    if (!line.starts_with(keyword)) return false;
    line.remove_prefix(keyword.size());
    auto const same = [](char one, char other) {
        return (one == '-' ? '_' : one) == (other == '-' ? '_' : other);
    };
    return std::ranges::equal(line.substr(0, line.find(' ')), alias, same);
}

template <class Matches>
bool has_line(std::filesystem::path const& file, Matches matches) {
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);)
        if (matches(line)) return true;
    return false;
}

Result<RdmaDevice const*> find_soft(std::vector<RdmaDevice> const& devices,
                                    std::string const& name) {
    auto const found = std::ranges::find(devices, name, &RdmaDevice::name);
    if (found == devices.end()) return nullptr;
    if (soft_type(*found)) return &*found;
    return fail(Problem::conflict, fmt::format("{} is not a software link, so it is kept", name),
                "name a software link: in vfctl rdma list, its DRIVER is \"software\"");
}

// Checks again: a user may have appeared since the plan. `forced` accepts users that can't be
// listed, and the kernel's own objects, which go with the link.
Result<void> check_unused(LinuxKernelRoots const& roots, NlSocket& rdma, RdmaDevice const& device,
                          bool forced, Deadline deadline) {
    auto users = list_rdma_users(rdma, device, deadline);
    if (!users && forced) return {};
    if (!users)
        return fail(Problem::link_in_use,
                    fmt::format("the users of RDMA link {} can't be listed: {}", device.name,
                                users.error().detail),
                    "delete it with --force if you know that it has none");
    name_processes(roots, *users);
    VFMGR_CHECK(check_processes(device.name, *users));
    if (forced || users->empty()) return {};
    return fail(
        Problem::link_in_use,
        fmt::format("RDMA link {} is in use: {}", device.name, user_sentence(users->front())),
        "stop that first, or delete it with --force");
}

}  // namespace

std::optional<bool> LinkModules::there(LinuxKernelRoots const& roots, SoftRdmaType type) {
    std::string const module = module_of(type);
    std::error_code error;
    if (std::filesystem::exists(roots.sysfs / "module" / module, error)) return true;
    auto const aliases = roots.modules / "modules.alias";
    auto const written_at = std::filesystem::last_write_time(aliases, error);
    if (error) return std::nullopt;
    std::lock_guard const lock(mutex_);
    if (written_at_ != written_at) loadable_.clear();
    written_at_ = written_at;
    auto const [known, added] = loadable_.try_emplace(type, false);
    if (!added) return known->second;
    auto const alias = fmt::format("rdma-link-{}", enum_name(type));
    known->second =
        has_line(aliases, [&](std::string_view line) { return names_alias(line, alias); }) ||
        has_line(roots.modules / "modules.builtin",
                 [&](std::string_view line) { return line.ends_with("/" + module + ".ko"); });
    return known->second;
}

Result<HostNetworkView> view_host_network(LinuxKernelRoots const& roots, LinkModules& modules,
                                          Deadline deadline) {
    HostNetworkView view;
    view.observed_at = system_clock().now();
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const netdevs, list_netdevs(socket, deadline));
    for (auto const& netdev : netdevs) view.netdevs[netdev.name] = state_of(netdevs, netdev);
    view.rxe_module = modules.there(roots, SoftRdmaType::rxe);
    view.siw_module = modules.there(roots, SoftRdmaType::siw);
    auto rdma = NlSocket::open(NlProtocol::rdma);
    if (!rdma && rdma.error().problem == Problem::unsupported) return view;
    if (!rdma) return fail(std::move(rdma).error());
    VFMGR_TRY(auto const devices, list_rdma_devices(*rdma, deadline));
    for (auto const& device : devices)
        view.rdma[device.name] = observe_link(roots, *rdma, netdevs, device, deadline);
    return view;
}

Result<Observed> perform_step(LinuxKernelRoots const&, AddSoftRdmaLink const& step,
                              Deadline deadline) {
    auto const& link = step.link;
    VFMGR_TRY(auto rdma, NlSocket::open(NlProtocol::rdma));
    VFMGR_TRY(auto const devices, list_rdma_devices(rdma, deadline));
    if (auto const there = std::ranges::find(devices, link.name, &RdmaDevice::name);
        there != devices.end()) {
        bool const on_it = std::ranges::any_of(
            there->ports, [&](RdmaPort const& port) { return port.ifname == link.ifname; });
        if (soft_type(*there) == link.type && on_it) return Observed{};
        return fail(Problem::conflict,
                    fmt::format("the RDMA device {} already exists and is not a {} link on {}",
                                link.name, enum_name(link.type), link.ifname),
                    "choose another name");
    }
    VFMGR_CHECK(add_rdma_link(rdma, link, deadline));
    return Observed{{rdma_link_advice(link)}};
}

Result<Observed> perform_step(LinuxKernelRoots const& roots, RemoveSoftRdmaLink const& step,
                              Deadline deadline) {
    auto rdma = NlSocket::open(NlProtocol::rdma);
    if (!rdma && rdma.error().problem == Problem::unsupported) return Observed{};
    if (!rdma) return fail(std::move(rdma).error());
    VFMGR_TRY(auto const devices, list_rdma_devices(*rdma, deadline));
    VFMGR_TRY(RdmaDevice const* const device, find_soft(devices, step.name));
    if (device == nullptr) return Observed{};
    VFMGR_CHECK(check_unused(roots, *rdma, *device, step.force, deadline));
    VFMGR_CHECK(remove_rdma_link(*rdma, *device, deadline));
    return Observed{};
}

}  // namespace vfmgr
