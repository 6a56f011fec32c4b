// SPDX-License-Identifier: Apache-2.0
// How an InfiniBand subnet carries packets between the device's ports, and datagrams on any link
// layer: by LID, by GID where a packet has one, and only within a partition (IBTA, chapters 9 and
// 10).
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "tests/fakes/verbs/fabric.hpp"

namespace vfmgr::fakes {
namespace {

constexpr std::size_t grh_bytes = 40, grh_source = 8, grh_destination = 24, ipv4_source = 32;

SubnetPort const& port_of(Pair const& pair) {
    return objects().fabric.ports.at(pair.port - 1U);
}

std::uint16_t pkey_of(Pair const& pair) {
    auto const& pkeys = port_of(pair).pkeys;
    return pair.pkey_index < pkeys.size() ? pkeys[pair.pkey_index] : std::uint16_t{0};
}

bool same_gid(std::array<std::uint8_t, 16> const& left, ibv_gid const& right) {
    return std::ranges::equal(left, right.raw);
}

bool in_one_partition(std::uint16_t left, std::uint16_t right) {
    constexpr unsigned full = 0x8000, base = 0x7fff;
    return ((left ^ right) & base) == 0 && (left & base) != 0 && ((left | right) & full) != 0;
}

// Without a GRH nothing tells ports apart that share a LID.
bool finds_port(SubnetPort const& from, ibv_ah_attr const& way, SubnetPort const& to) {
    if (way.dlid != to.lid) return false;
    if (way.is_global) return same_gid(to.gid, way.grh.dgid);
    return !from.grh_required && !to.grh_required &&
           std::ranges::count(objects().fabric.ports, to.lid, &SubnetPort::lid) == 1;
}

ibv_ah_attr const* way_of(Request const& request) {
    auto const found = std::ranges::find_if(
        objects().addresses, [&](Address const& each) { return &each.verbs == request.to; });
    return found == objects().addresses.end() ? nullptr : &found->attributes;
}

// RoCE v2 over IPv4 has the IP header in the room's last 20 bytes; InfiniBand without a GRH leaves
// the room as it was.
void put_header(Pair const& from, ibv_ah_attr const& way, std::byte* room) {
    auto const& fabric = objects().fabric;
    if (!way.is_global) return;
    std::array<std::uint8_t, 16> source{};
    if (fabric.ports.empty())
        std::ranges::copy(fabric.gids.at(way.grh.sgid_index).raw, source.begin());
    else
        source = port_of(from).gid;
    std::memcpy(room + grh_source, source.data(), source.size());
    std::memcpy(room + grh_destination, way.grh.dgid.raw, source.size());
    if (fabric.ports.empty()) std::memcpy(room + ipv4_source, source.data() + 12, 4);
}

void deliver(Pair const& from, ibv_ah_attr const& way, Request const& request, Pair& to) {
    auto const length = request.local->length;
    if (to.posted.empty() || to.posted.front().into.length < grh_bytes + length) return;
    auto const taken = to.posted.front();
    to.posted.pop_front();
    auto* const room = reinterpret_cast<std::byte*>(taken.into.addr);
    put_header(from, way, room);
    std::memcpy(room + grh_bytes, reinterpret_cast<std::byte const*>(request.local->addr), length);
    ibv_wc done{};
    done.wr_id = taken.id;
    done.opcode = IBV_WC_RECV;
    done.byte_len = static_cast<std::uint32_t>(grh_bytes) + length;
    done.qp_num = to.verbs.qp_base.qp_num;
    done.src_qp = from.verbs.qp_base.qp_num;
    if (way.is_global) done.wc_flags = IBV_WC_GRH;
    if (!objects().fabric.ports.empty()) done.slid = port_of(from).lid;
    complete(to.verbs.qp_base.recv_cq, done);
}

}  // namespace

bool passes(Pair const& from, ibv_ah_attr const& way, Pair const& to) {
    auto& fabric = objects().fabric;
    if (fabric.ports.empty()) return true;
    auto const &source = port_of(from), &target = port_of(to);
    bool const arrives = source.state == IBV_PORT_ACTIVE && target.state == IBV_PORT_ACTIVE &&
                         finds_port(source, way, target) &&
                         in_one_partition(pkey_of(from), pkey_of(to));
    if (arrives) ++(way.is_global ? fabric.with_grh : fabric.without_grh);
    return arrives;
}

bool is_from_peer(Pair const& from, ibv_ah_attr const& way, Pair const& to) {
    if (objects().fabric.ports.empty()) return true;
    auto const& source = port_of(from);
    return to.peer == from.verbs.qp_base.qp_num && to.address.dlid == source.lid &&
           to.address.is_global == way.is_global &&
           (way.is_global == 0 || same_gid(source.gid, to.address.grh.dgid)) &&
           passes(from, way, to);
}

void send_datagram(Pair& from, Request const& request) {
    auto const* const way = way_of(request);
    if (!way || objects().fabric.loses_datagrams) return;
    for (auto& each : objects().pairs) {
        auto const& base = each.verbs.qp_base;
        bool const takes = base.qp_type == IBV_QPT_UD && base.qp_num == request.target &&
                           each.q_key == request.key &&
                           (base.state == IBV_QPS_RTR || base.state == IBV_QPS_RTS);
        if (takes && passes(from, *way, each)) return deliver(from, *way, request, each);
    }
}

}  // namespace vfmgr::fakes
