// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "vfmgr/kernel/interface_filter.hpp"
#include "vfmgr/kernel/pf_view.hpp"
#include "vfmgr/kernel/steps.hpp"
#include "vfmgr/netlink/monitor.hpp"
#include "vfmgr/plan/rdma_links.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t ifname_characters_max = 15;  // IFNAMSIZ with its NUL is 16

Result<std::optional<Netdev>> find_interface(LinuxKernelRoots const& roots, NlSocket& socket,
                                             InterfaceId const& interface, Deadline deadline) {
    VFMGR_TRY(auto const netdevs, list_netdevs(socket, deadline));
    auto const* const found = interface_netdev(roots, netdevs, interface);
    return found == nullptr ? std::nullopt : std::optional(*found);
}

Result<Netdev> require_interface(LinuxKernelRoots const& roots, NlSocket& socket,
                                 InterfaceId const& interface, Deadline deadline) {
    VFMGR_TRY(auto const found, find_interface(roots, socket, interface, deadline));
    if (found) return *found;
    return fail(Problem::not_found,
                fmt::format("{} has no network interface", to_string(interface)),
                interface.vlan ? "check whether the VLAN device was removed: ip link"
                               : "bind the PF to its network driver");
}

// Disables link-local addresses (mode 1, none) and router advertisements, by which a tenant on the
// VLAN could give this host addresses and routes. The files are absent where IPv6 is off.
Result<void> close_ipv6(LinuxKernelRoots const& roots, std::string const& netdev) {
    auto const folder = roots.proc / "sys/net/ipv6/conf" / netdev;
    for (auto const& [name, value] :
         {std::pair("accept_ra", "0"), std::pair("addr_gen_mode", "1")}) {
        auto const error = write_text(folder / name, value);
        if (error == 0 || error == ENOENT) continue;
        return fail({Problem::kernel_refused,
                     fmt::format("{} of {} could not be set to {}: {}", name, netdev, value,
                                 std::generic_category().message(error)),
                     "run vfmgr with /proc/sys writable",
                     {errno_cause("write " + (folder / name).string(), error)}});
    }
    return {};
}

Error taken(std::string detail) {
    return {Problem::conflict, std::move(detail),
            "remove it if it is not needed (ip link del NAME), or choose another VLAN"};
}

}  // namespace

std::string vlan_interface_name(PciAddress const& pf, std::string const& ifname,
                                std::uint16_t vlan) {
    auto plain = fmt::format("{}.{}", ifname, vlan);
    if (plain.size() <= ifname_characters_max) return plain;
    // Unique, unlike a truncated name: 4 to 6 digits of the domain, bus, device and function.
    return fmt::format("v{:04x}{:02x}{:02x}.{}", pf.domain, pf.bus, pf.device * 8 + pf.function,
                       vlan);
}

Result<Observed> perform_step(LinuxKernelRoots const& roots, SetLink const& step,
                              Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const netdev, require_interface(roots, socket, step.interface, deadline));
    NetdevChange change{netdev.ifindex, {}, {}};
    if (netdev.up != step.up) change.up = step.up;
    if (netdev.mtu != step.mtu) change.mtu = step.mtu;
    if (change.up || change.mtu) VFMGR_CHECK(change_netdev(socket, netdev.name, change, deadline));
    return Observed{};
}

Result<Observed> perform_step(LinuxKernelRoots const& roots, AwaitCarrier const& step,
                              Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto monitor, EventMonitor::open());
    std::string name;
    VFMGR_TRY(auto const waited, wait_until(monitor, deadline, [&]() -> Result<bool> {
                  VFMGR_TRY(auto const netdev,
                            require_interface(roots, socket, step.interface, deadline));
                  name = netdev.name;
                  return netdev.carrier;
              }));
    if (waited == Waited::holds) return Observed{};
    return fail(Problem::timed_out, fmt::format("{} is up but has no carrier", name),
                "connect the cable, check the switch's port, and try again");
}

Result<Observed> perform_step(LinuxKernelRoots const& roots, AddVlanInterface const& step,
                              Deadline deadline) {
    if (!step.interface.vlan)
        return fail(
            Problem::invalid_request,
            fmt::format("{} names no VLAN to create a device for", to_string(step.interface)),
            "give the interface a vlan");
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const parent,
              require_interface(roots, socket, {step.interface.pf, std::nullopt}, deadline));
    VFMGR_TRY(auto const netdevs, list_netdevs(socket, deadline));
    if (auto const* const there = interface_netdev(roots, netdevs, step.interface)) {
        if (ours(*there)) {
            VFMGR_CHECK(close_ipv6(roots, there->name));
            return Observed{};
        }
        return fail(taken(
            fmt::format("VLAN {} of {} is already the interface {}, which vfmgr did not create",
                        *step.interface.vlan, parent.name, there->name)));
    }
    auto const name = vlan_interface_name(step.interface.pf, parent.name, *step.interface.vlan);
    if (name.size() > ifname_characters_max)
        return fail(
            Problem::limit_exceeded,
            fmt::format("the interface name for VLAN {} of {} would have more than 15 characters",
                        *step.interface.vlan, parent.name),
            "give the PF a shorter interface name");
    bool const name_taken = std::any_of(netdevs.begin(), netdevs.end(),
                                        [&](Netdev const& each) { return each.name == name; });
    if (name_taken)
        return fail(taken(fmt::format("the interface {} already exists but is not VLAN {} of {}",
                                      name, *step.interface.vlan, parent.name)));
    VFMGR_CHECK(add_vlan_netdev(socket, {parent.ifindex, *step.interface.vlan, name}, deadline));
    VFMGR_CHECK(close_ipv6(roots, name));
    return Observed{};
}

Result<Observed> perform_step(LinuxKernelRoots const& roots, RemoveVlanInterface const& step,
                              Deadline deadline) {
    if (!step.interface.vlan)
        return fail(
            Problem::invalid_request,
            fmt::format("{} is the PF itself and can't be removed", to_string(step.interface)),
            "give the interface a vlan");
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const found, find_interface(roots, socket, step.interface, deadline));
    if (!found) return Observed{};
    if (!ours(*found))
        return fail(Problem::conflict,
                    fmt::format("{} was not created by vfmgr and is kept", found->name),
                    "remove it yourself if it is not needed: ip link del " + found->name);
    VFMGR_CHECK(delete_netdev(socket, *found, deadline));
    VFMGR_CHECK(unfilter_interface(found->name, deadline));
    return Observed{};
}

Result<Observed> perform_step(LinuxKernelRoots const& roots, AddAddress const& step,
                              Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const netdev, require_interface(roots, socket, step.interface, deadline));
    auto const length = static_cast<std::uint8_t>(step.address.bits());
    // The filter first, so tenants never reach more, not even for a moment.
    VFMGR_CHECK(filter_address(netdev, step.address, deadline));
    VFMGR_CHECK(add_address(socket, {netdev.ifindex, step.address, length}, deadline));
    return Observed{};
}

Result<Observed> perform_step(LinuxKernelRoots const& roots, RemoveAddress const& step,
                              Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const netdev, find_interface(roots, socket, step.interface, deadline));
    if (!netdev) return Observed{};
    auto const length = static_cast<std::uint8_t>(step.address.bits());
    VFMGR_CHECK(remove_address(socket, {netdev->ifindex, step.address, length}, deadline));
    VFMGR_CHECK(unfilter_address(netdev->name, step.address, deadline));
    return Observed{};
}

// The filter first, as above, then the neighbour, so the host never asks the wire for the address's
// owner.
Result<Observed> perform_step(LinuxKernelRoots const& roots, AddPeer const& step,
                              Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const netdev, require_interface(roots, socket, step.interface, deadline));
    VFMGR_CHECK(filter_vm(
        netdev, {netdev.name, step.mac, step.address, step.source, step.guest_plane}, deadline));
    VFMGR_CHECK(replace_neighbour(socket, {netdev.ifindex, step.address, step.mac}, deadline));
    VFMGR_CHECK(add_peer_route(socket, {step.address, netdev.ifindex, step.source}, deadline));
    return Observed{};
}

Result<Observed> perform_step(LinuxKernelRoots const& roots, RemovePeer const& step,
                              Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const netdev, find_interface(roots, socket, step.interface, deadline));
    if (!netdev) return Observed{};
    VFMGR_CHECK(remove_peer_route(socket, step.address, netdev->ifindex, deadline));
    VFMGR_CHECK(remove_neighbour(socket, step.address, netdev->ifindex, deadline));
    VFMGR_CHECK(unfilter_vm(*netdev, step.address, deadline));
    return Observed{};
}

Result<Observed> perform_step(LinuxKernelRoots const& roots, AddRdmaLink const& step,
                              Deadline deadline) {
    if (!rdma_devices_of(roots, step.pf).empty()) return Observed{};
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const netdev,
              require_interface(roots, socket, {step.pf, std::nullopt}, deadline));
    VFMGR_TRY(auto rdma, NlSocket::open(NlProtocol::rdma));
    VFMGR_TRY(auto const devices, list_rdma_devices(rdma, deadline));
    if (rdma_device_on(devices, netdev.ifindex) != nullptr) return Observed{};
    SoftRdmaLink const link{std::string(responders_link_prefix) + netdev.name, SoftRdmaType::rxe,
                            netdev.name};
    VFMGR_CHECK(add_rdma_link(rdma, link, deadline));
    return Observed{};
}

Result<Observed> perform_step(LinuxKernelRoots const& roots, RemoveRdmaLink const& step,
                              Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const netdev, find_interface(roots, socket, {step.pf, std::nullopt}, deadline));
    auto rdma = NlSocket::open(NlProtocol::rdma);
    if (!rdma && rdma.error().problem == Problem::unsupported) return Observed{};
    if (!rdma) return fail(std::move(rdma).error());
    if (!netdev) return Observed{};
    VFMGR_TRY(auto const devices, list_rdma_devices(*rdma, deadline));
    for (auto const& device : devices) {
        bool const on_pf =
            std::any_of(device.ports.begin(), device.ports.end(),
                        [&](RdmaPort const& port) { return port.ifindex == netdev->ifindex; });
        if (on_pf && device.name.starts_with(responders_link_prefix))
            VFMGR_CHECK(remove_rdma_link(*rdma, device, deadline));
    }
    return Observed{};
}

}  // namespace vfmgr
