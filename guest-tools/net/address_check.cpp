// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/address_check.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "api/os/descriptor.hpp"
#include "api/os/file.hpp"
#include "vfmgr/netlink/ip.hpp"

namespace vfmgr::guest {
namespace {

std::filesystem::path setting_file(std::filesystem::path const& proc, std::string const& ifname,
                                   std::string const& name) {
    return proc / "sys/net/ipv4/conf" / ifname / name;
}

Error setting_failed(std::filesystem::path const& file, char const* call) {
    return {Problem::kernel_refused,
            fmt::format("{} can't be {}", file.string(),
                        std::string_view(call) == "read" ? "read" : "set"),
            "run vf-guest as root, with /proc/sys writable",
            {errno_cause(call, errno)}};
}

}  // namespace

Result<ArpSettings> read_arp_settings(std::filesystem::path const& proc,
                                      std::string const& ifname) {
    ArpSettings found;
    for (auto const& [name, unused] : arp_settings_of_vf) {
        auto const file = setting_file(proc, ifname, name);
        auto const text = read_file(file);
        if (!text) return fail(setting_failed(file, "read"));
        found[name] = text->substr(0, text->find('\n'));
    }
    return found;
}

Result<void> write_arp_settings(std::filesystem::path const& proc, std::string const& ifname,
                                ArpSettings const& settings) {
    for (auto const& [name, value] : settings) {
        auto const file = setting_file(proc, ifname, name);
        FileDescriptor const open(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
        if (!open && errno == ENOENT) return {};
        if (!open || ::write(open.get(), value.data(), value.size()) < 0)
            return fail(setting_failed(file, "write"));
    }
    return {};
}

namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds ask_time{5};
constexpr std::chrono::milliseconds probe_wait{300};

// ARP for Ethernet and IPv4 (RFC 826).
struct Arp {
    std::uint16_t hardware = htons(ARPHRD_ETHER);
    std::uint16_t protocol = htons(ETH_P_IP);
    std::uint8_t hardware_length = 6;
    std::uint8_t protocol_length = 4;
    std::uint16_t operation = htons(ARPOP_REQUEST);
    std::array<std::uint8_t, 6> sender_mac{};
    std::array<std::uint8_t, 4> sender{};  // zeros: a probe, which changes no ARP cache
    std::array<std::uint8_t, 6> target_mac{};
    std::array<std::uint8_t, 4> target{};
};
static_assert(sizeof(Arp) == 28);

Error no_probe(std::string const& ifname, char const* call) {
    return {Problem::kernel_refused,
            fmt::format("can't check over {} whether another machine has its address", ifname),
            "run vf-guest as root; allow AF_PACKET in its unit",
            {errno_cause(call, errno)}};
}

Result<FileDescriptor> send_probe(Netdev const& netdev, IpAddress const& address) {
    FileDescriptor socket(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ARP)));
    if (!socket) return fail(no_probe(netdev.name, "socket AF_PACKET"));
    sockaddr_ll where{};
    where.sll_family = AF_PACKET;
    where.sll_protocol = htons(ETH_P_ARP);
    where.sll_ifindex = netdev.ifindex;
    where.sll_halen = 6;
    std::ranges::fill_n(where.sll_addr, 6, 0xff);
    auto const* const name = reinterpret_cast<sockaddr const*>(&where);
    if (::bind(socket.get(), name, sizeof where) != 0) return fail(no_probe(netdev.name, "bind"));
    Arp probe;
    probe.sender_mac = netdev.mac->octets;
    std::copy_n(address.octets.begin(), probe.target.size(), probe.target.begin());
    if (::sendto(socket.get(), &probe, sizeof probe, 0, name, sizeof where) < 0)
        return fail(no_probe(netdev.name, "sendto"));
    return socket;
}

// Ignores answers from `own`, this machine's netdevs: another of its NICs on the same network may
// answer, too (arp_ignore 0).
Result<std::optional<MacAddress>> other_owner(Netdev const& netdev, IpAddress const& address,
                                              std::vector<Netdev> const& own) {
    VFMGR_TRY(auto const socket, send_probe(netdev, address));
    auto const until = Steady::now() + probe_wait;
    std::array<std::byte, 256> room{};
    while (true) {
        VFMGR_TRY(auto const ready, await_readable(std::array{socket.get()}, until));
        if (ready == Readiness::deadline_passed) return std::nullopt;
        auto const got = ::recv(socket.get(), room.data(), room.size(), MSG_DONTWAIT);
        if (got < 0) continue;
        auto const claimed =
            arp_claim(std::span(room).first(static_cast<std::size_t>(got)), address);
        if (claimed && std::ranges::find(own, claimed, &Netdev::mac) == own.end()) return claimed;
    }
}

}  // namespace

std::optional<MacAddress> arp_claim(ByteView packet, IpAddress const& address) {
    Arp arp;
    if (packet.size() < sizeof arp || address.family != IpAddress::Family::v4) return std::nullopt;
    std::memcpy(&arp, packet.data(), sizeof arp);
    Arp const shape;
    bool const ours = arp.hardware == shape.hardware && arp.protocol == shape.protocol &&
                      arp.hardware_length == shape.hardware_length &&
                      arp.protocol_length == shape.protocol_length;
    if (!ours || !std::ranges::equal(arp.sender, std::span(address.octets).first(4)))
        return std::nullopt;
    return MacAddress{arp.sender_mac};
}

Result<void> check_unclaimed(IpAddress const& address, Netdev const& netdev,
                             std::vector<Netdev> const& own) {
    if (address.family != IpAddress::Family::v4 || !netdev.mac) return {};
    VFMGR_TRY(auto const other, other_owner(netdev, address, own));
    if (!other) return {};
    return fail(Problem::conflict,
                fmt::format("another machine also has the address {} of {}: MAC {}",
                            to_string(address), netdev.name, to_string(*other)),
                "remove the address from that machine, or attach the VF with another address");
}

Result<void> check_address(GuestAttachment const& attachment, std::string const& ifname) {
    auto const deadline = Steady::now() + ask_time;
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const own, list_netdevs(socket, deadline));
    auto const netdev = std::ranges::find(own, ifname, &Netdev::name);
    if (netdev == own.end())
        return fail(Problem::not_found, fmt::format("there is no netdev {}", ifname),
                    "check that the VF is plugged in");
    VFMGR_TRY(auto const addresses, list_addresses(socket, deadline));
    auto const is_it = [&](NetdevAddress const& each) {
        return each.ifindex == netdev->ifindex && each.address == attachment.address;
    };
    auto const shown = to_string(attachment.address);
    if (std::ranges::none_of(addresses, is_it))
        return fail(Problem::not_found,
                    fmt::format("{} no longer has the address {}", ifname, shown),
                    fmt::format("add it again: ip address add {}/{} dev {}", shown,
                                attachment.prefix_length, ifname));
    return check_unclaimed(attachment.address, *netdev, own);
}

}  // namespace vfmgr::guest
