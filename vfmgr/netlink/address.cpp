// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/address.hpp"

#include <fmt/format.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>

namespace vfmgr {
namespace {

NlRequest address_request(std::uint16_t type, int flags, NetdevAddress const& address) {
    ifaddrmsg header{};
    header.ifa_family = family_of(address.address);
    header.ifa_prefixlen = address.prefix_length;
    header.ifa_index = static_cast<std::uint32_t>(address.ifindex);
    header.ifa_flags = address.address.family == IpAddress::Family::v6 ? IFA_F_NODAD : 0;
    NlRequest request(type, flags);
    request.header(header).put_ip(IFA_LOCAL, address.address).put_ip(IFA_ADDRESS, address.address);
    return request;
}

std::string with_length(NetdevAddress const& address) {
    return fmt::format("{}/{}", to_string(address.address), address.prefix_length);
}

}  // namespace

std::optional<NetdevAddress> parse_address(ByteView payload) {
    auto const header = front_object<ifaddrmsg>(payload);
    if (!header) return std::nullopt;
    Attributes const attributes(after(payload, sizeof(ifaddrmsg)));
    // On IPv4 point-to-point links IFA_ADDRESS is the peer's; IPv6 has IFA_LOCAL only there.
    auto address = attributes.ip(IFA_LOCAL);
    if (!address) address = attributes.ip(IFA_ADDRESS);
    if (!address || family_of(*address) != header->ifa_family ||
        header->ifa_prefixlen > address->bits())
        return std::nullopt;
    return NetdevAddress{static_cast<int>(header->ifa_index), *address, header->ifa_prefixlen};
}

Result<std::vector<NetdevAddress>> list_addresses(NlSocket& socket, Deadline deadline) {
    NlRequest request(RTM_GETADDR, NLM_F_DUMP);
    request.header(ifaddrmsg{});  // AF_UNSPEC: every family
    VFMGR_TRY(auto const answers, socket.dump(request, "RTM_GETADDR", deadline));
    std::vector<NetdevAddress> addresses;
    for (auto const& answer : answers)
        if (answer.type == RTM_NEWADDR)
            if (auto address = parse_address(answer.payload)) addresses.push_back(*address);
    return addresses;
}

Result<void> add_address(NlSocket& socket, NetdevAddress const& address, Deadline deadline) {
    auto const call = "RTM_NEWADDR " + with_length(address);
    auto const request = address_request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, address);
    VFMGR_TRY(auto const ack, socket.request(request, call, deadline));
    // The kernel compares device, address and, on IPv4, the prefix length.
    if (ack.ok() || ack.error == EEXIST) return {};
    return fail(
        nl_refusal(ack, call,
                   fmt::format("address {} could not be added to interface {}",
                               with_length(address), address.ifindex),
                   "check that the interface still exists and IP is enabled on it: ip link"));
}

Result<void> remove_address(NlSocket& socket, NetdevAddress const& address, Deadline deadline) {
    auto const call = "RTM_DELADDR " + with_length(address);
    VFMGR_TRY(auto const ack,
              socket.request(address_request(RTM_DELADDR, 0, address), call, deadline));
    if (ack.ok() || ack.error == EADDRNOTAVAIL || ack.error == ENODEV) return {};
    return fail(nl_refusal(ack, call,
                           fmt::format("address {} could not be removed from interface {}",
                                       with_length(address), address.ifindex),
                           "see the kernel's log for the reason: journalctl -k"));
}

}  // namespace vfmgr
