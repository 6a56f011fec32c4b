// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/neighbour.hpp"

#include <fmt/format.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <cerrno>

namespace vfmgr {
namespace {

NlRequest neighbour_request(std::uint16_t type, int flags, IpAddress const& address, int ifindex) {
    ndmsg header{};
    header.ndm_family = family_of(address);
    header.ndm_ifindex = ifindex;
    header.ndm_state = NUD_PERMANENT;
    NlRequest request(type, flags);
    request.header(header).put_ip(NDA_DST, address);
    return request;
}

}  // namespace

bool permanent(Neighbour const& neighbour) {
    return (neighbour.state & NUD_PERMANENT) != 0;
}

std::optional<Neighbour> parse_neighbour(ByteView payload) {
    auto const header = front_object<ndmsg>(payload);
    if (!header) return std::nullopt;
    Attributes const attributes(after(payload, sizeof(ndmsg)));
    auto const address = attributes.ip(NDA_DST);
    if (!address || family_of(*address) != header->ndm_family) return std::nullopt;
    return Neighbour{header->ndm_ifindex, *address, attributes.mac(NDA_LLADDR), header->ndm_state};
}

Result<std::vector<Neighbour>> list_neighbours(NlSocket& socket, Deadline deadline) {
    NlRequest request(RTM_GETNEIGH, NLM_F_DUMP);
    request.header(ndmsg{});  // AF_UNSPEC: every family
    VFMGR_TRY(auto const answers, socket.dump(request, "RTM_GETNEIGH", deadline));
    std::vector<Neighbour> neighbours;
    for (auto const& answer : answers)
        if (answer.type == RTM_NEWNEIGH)
            if (auto neighbour = parse_neighbour(answer.payload)) neighbours.push_back(*neighbour);
    return neighbours;
}

Result<void> replace_neighbour(NlSocket& socket, PermanentNeighbour const& neighbour,
                               Deadline deadline) {
    auto request = neighbour_request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, neighbour.address,
                                     neighbour.ifindex);
    request.put(NDA_LLADDR, neighbour.mac.octets);
    auto const call =
        fmt::format("RTM_NEWNEIGH {} {}", to_string(neighbour.address), to_string(neighbour.mac));
    VFMGR_TRY(auto const ack, socket.request(request, call, deadline));
    if (ack.ok()) return {};
    return fail(nl_refusal(
        ack, call,
        fmt::format("the neighbour {} at {} could not be set on interface {}",
                    to_string(neighbour.address), to_string(neighbour.mac), neighbour.ifindex),
        "check that the interface is up: ip link"));
}

Result<void> remove_neighbour(NlSocket& socket, IpAddress const& address, int ifindex,
                              Deadline deadline) {
    auto const call = "RTM_DELNEIGH " + to_string(address);
    VFMGR_TRY(auto const ack,
              socket.request(neighbour_request(RTM_DELNEIGH, 0, address, ifindex), call, deadline));
    if (ack.ok() || ack.error == ENOENT || ack.error == ENODEV) return {};
    return fail(nl_refusal(ack, call,
                           fmt::format("the neighbour {} could not be removed from interface {}",
                                       to_string(address), ifindex),
                           "see the kernel's log for the reason: journalctl -k"));
}

}  // namespace vfmgr
