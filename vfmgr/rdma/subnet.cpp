// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/rdma/subnet.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "vfmgr/rdma/device.hpp"
#include "vfmgr/rdma/faults.hpp"

namespace vfmgr::verify {
namespace {

constexpr std::uint16_t full_member = 0x8000;
constexpr std::size_t prefix_bytes = 8;

struct Chosen {
    std::uint16_t index = 0;
    std::uint16_t pkey = 0;
};

// How well an entry serves: 3 exactly, 2 with another membership, 1 as any other.
unsigned rank(std::uint16_t entry, std::optional<std::uint16_t> pkey) {
    if (!pkey) return 1;
    if (entry == *pkey) return 3;
    return ((entry ^ *pkey) & 0x7fffU) == 0 ? 2 : 1;
}

}  // namespace

std::uint16_t table_entry(Pkey const& pkey) {
    bool const full = pkey.membership == PkeyMembership::full;
    return static_cast<std::uint16_t>(pkey.key | (full ? full_member : 0U));
}

std::string pkeys_text(std::span<std::uint16_t const> pkeys) {
    std::string text;
    for (auto const pkey : pkeys) text += fmt::format("{}0x{:04x}", text.empty() ? "" : " ", pkey);
    return text;
}

Guid guid_of(std::array<std::uint8_t, 16> const& gid) {
    Guid guid;
    for (std::size_t at = prefix_bytes; at < gid.size(); ++at)
        guid.value = guid.value << 8U | gid[at];
    return guid;
}

Result<SubnetPort> read_subnet_port(ibv_context* context, std::uint8_t number,
                                    ibv_port_attr const& port, std::optional<std::uint16_t> pkey,
                                    Grh grh) {
    SubnetPort made;
    made.end.lid = port.lid;
    made.end.grh = grh == Grh::always || (port.flags & IBV_QPF_GRH_REQUIRED) != 0;
    std::optional<Chosen> best;
    for (int index = 0; index < port.pkey_tbl_len; ++index) {
        __be16 entry = 0;
        if (ibv_query_pkey(context, number, index, &entry) != 0) break;
        auto const found = ntohs(entry);
        if ((found & 0x7fffU) == 0) continue;  // an empty place
        made.pkeys.push_back(found);
        if (!best || rank(found, pkey) > rank(best->pkey, pkey))
            best = Chosen{static_cast<std::uint16_t>(index), found};
    }
    if (!best)
        return fail(
            Problem::unavailable,
            fmt::format("port {} of {} has no P_Key", number, context->device->name),
            "check the subnet manager: each port has one of the default partition at least");
    made.end.pkey = best->pkey;
    made.pkey_index = best->index;
    return made;
}

Result<bool> route_by_lid(SubnetPort const& own, std::array<std::uint8_t, 16> const& own_gid,
                          QueuePairEnd const& peer, ibv_ah_attr& address) {
    if (!peer.subnet)
        return fail(Problem::unsupported,
                    fmt::format("the peer with GID {} is on Ethernet, and this port on InfiniBand",
                                peer.gid),
                    "attach a VF of a PF with the host's link layer");
    VFMGR_TRY(auto const gid, parse_gid(peer.gid));
    if (!std::ranges::equal(std::span(gid).first(prefix_bytes),
                            std::span(own_gid).first(prefix_bytes)))
        return fail(Problem::unsupported,
                    fmt::format("the peer's GID {} is in another InfiniBand subnet than {}",
                                gid_text(gid), gid_text(own_gid)),
                    "test between ports of one subnet: routes between subnets are not supported");
    address.dlid = peer.subnet->lid;
    // Behind one LID, as a PF and its VFs often are, only the GID tells ports apart.
    return own.end.grh || peer.subnet->grh || peer.subnet->lid == own.end.lid;
}

}  // namespace vfmgr::verify
