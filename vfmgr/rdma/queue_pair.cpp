// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/rdma/queue_pair.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "api/os/random.hpp"
#include "vfmgr/rdma/faults.hpp"

namespace vfmgr::verify {
namespace {

constexpr std::uint32_t mask_24_bits = 0xffffff;
constexpr std::uint32_t inline_bytes_requested = 220;  // perftest's for write latency
// 4.096 us * 2^14 = 67 ms, or up to four times that: the time that a lost packet stalls hardware,
// which acknowledges within microseconds.
constexpr std::uint8_t ack_timeout_of_hardware = 14;
// 1.07 s. SoftRoCE and siw acknowledge when a CPU gets to it: on a busy machine, or an emulated
// one, 14 fired 30 to 68 times in a run that lost nothing. Seven retries then take 7.5 s; sessions
// and tests have their own deadlines.
constexpr std::uint8_t ack_timeout_of_software = 18;
constexpr std::uint8_t hop_limit = 64;
// Protects nothing: each datagram is checked for whether its sender may be answered. The highest
// bit would make it a privileged key.
constexpr std::uint32_t datagram_q_key = 0x11111111;
constexpr std::uint8_t retries = 7;  // for receiver-not-ready: without limit

ibv_sge element(Sge const& sge) {
    return {reinterpret_cast<std::uint64_t>(sge.bytes.data()),
            static_cast<std::uint32_t>(sge.bytes.size()), sge.key};
}

// Slack: rxe raises a fatal event on a full queue (RDMA.md#completion-queues).
int queue_entries(QueuePairOptions size, std::size_t pairs) {
    return static_cast<int>((size.sends + size.receives + 2) * pairs + 16);
}

VerbsPair create_pair(ibv_pd* pd, ibv_cq* queue, QueuePairOptions size, std::uint32_t inline_bytes,
                      ibv_qp_init_attr& expected) {
    expected = {};
    expected.send_cq = queue;
    expected.recv_cq = queue;
    expected.cap.max_send_wr = size.sends + 1;  // one more, which shut() posts
    expected.cap.max_recv_wr = size.receives + 1;
    expected.cap.max_send_sge = 1;
    expected.cap.max_recv_sge = size.receive_sges;
    expected.cap.max_inline_data = inline_bytes;
    expected.qp_type = size.transport == Transport::ud ? IBV_QPT_UD : IBV_QPT_RC;
    return VerbsPair(ibv_create_qp(pd, &expected));
}

}  // namespace

QueuePairEnd end_of(Endpoint const& endpoint) {
    QueuePairEnd end;
    end.gid = gid_hex(endpoint.gid);
    end.path_mtu = endpoint.path_mtu;
    end.reads_max = endpoint.reads_max;
    if (endpoint.subnet) end.subnet = endpoint.subnet->end;
    return end;
}

Result<ibv_ah_attr> address_of(Endpoint const& endpoint, QueuePairEnd const& peer) {
    VFMGR_TRY(auto const gid, parse_gid(peer.gid));
    ibv_ah_attr address{};
    address.port_num = endpoint.number;
    if (endpoint.subnet) {
        VFMGR_TRY(bool const global, route_by_lid(*endpoint.subnet, endpoint.gid, peer, address));
        if (!global) return address;
    } else if (peer.subnet) {
        return fail(Problem::unsupported,
                    fmt::format("the peer with GID {} is on InfiniBand, and this port on Ethernet",
                                gid_text(gid)),
                    "attach a VF of a PF with the host's link layer");
    }
    address.is_global = 1;
    address.grh.sgid_index = endpoint.gid_index;
    address.grh.hop_limit = hop_limit;
    // A NIC that trusts DSCP takes the priority from the traffic class. One that trusts the VLAN's
    // priority takes it from sl, which is Linux's default priority for this DSCP.
    address.grh.traffic_class = traffic_class_of(endpoint.dscp);
    address.sl = static_cast<std::uint8_t>(endpoint.dscp >> 3U);
    std::memcpy(address.grh.dgid.raw, gid.data(), gid.size());
    return address;
}

Result<VerbsAddress> make_address(Endpoint const& endpoint, QueuePairEnd const& peer) {
    VFMGR_TRY(auto to, address_of(endpoint, peer));
    VerbsAddress made(ibv_create_ah(endpoint.pd.get(), &to));
    if (made) return made;
    return fail(verbs_error(endpoint.context.get(),
                            "an address handle for the peer can't be created", "ibv_create_ah",
                            errno));
}

Result<QueuePair> QueuePair::make(Endpoint const& endpoint, QueuePairOptions size,
                                  unsigned remote_access,
                                  std::shared_ptr<CompletionQueue> completions) {
    auto* const context = endpoint.context.get();
    if (!completions) {
        VFMGR_TRY(auto own, CompletionQueue::make(context, queue_entries(size, 1)));
        completions = std::make_shared<CompletionQueue>(std::move(own));
    }
    ibv_qp_init_attr expected{};
    auto pair =
        create_pair(endpoint.pd.get(), completions->get(), size, inline_bytes_requested, expected);
    // Devices differ in what they inline; none of the tests needs it.
    if (!pair) pair = create_pair(endpoint.pd.get(), completions->get(), size, 0, expected);
    if (!pair)
        return fail(
            verbs_error(context,
                        fmt::format("a queue pair for {} sends and {} receives can't be created",
                                    size.sends, size.receives),
                        "ibv_create_qp", errno));
    auto end = end_of(endpoint);
    end.qp_num = pair->qp_num;
    end.psn = static_cast<std::uint32_t>(random_number()) & mask_24_bits;
    QueuePair made(std::move(completions), std::move(pair), std::move(end));
    made.inline_bytes_max_ = expected.cap.max_inline_data;
    VFMGR_CHECK(made.to_init(endpoint, remote_access));
    return made;
}

Result<void> QueuePair::to_init(Endpoint const& endpoint, unsigned remote_access) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.pkey_index = endpoint.pkey_index();
    attributes.port_num = endpoint.number;
    attributes.qp_access_flags = remote_access;
    attributes.qkey = datagram_q_key;
    bool const datagrams = pair_->qp_type == IBV_QPT_UD;
    return modify(attributes,
                  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                      (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS),
                  "INIT");
}

Result<void> QueuePair::modify(ibv_qp_attr& attributes, int mask, char const* to) {
    return verbs_result(pair_->context, fmt::format("the queue pair can't be moved to {}", to),
                        "ibv_modify_qp", ibv_modify_qp(pair_.get(), &attributes, mask));
}

Result<void> QueuePair::connect_datagrams(Endpoint const& endpoint, QueuePairEnd const& peer) {
    VFMGR_TRY(peer_address_, make_address(endpoint, peer));
    peer_number_ = peer.qp_num;
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    VFMGR_CHECK(modify(attributes, IBV_QP_STATE, "RTR"));
    attributes.qp_state = IBV_QPS_RTS;
    attributes.sq_psn = end_.psn;
    return modify(attributes, IBV_QP_STATE | IBV_QP_SQ_PSN, "RTS");
}

Result<void> QueuePair::connect(Endpoint const& endpoint, QueuePairEnd const& peer) {
    if (pair_->qp_type == IBV_QPT_UD) return connect_datagrams(endpoint, peer);
    VFMGR_TRY(auto const mtu, mtu_of_bytes(std::min(endpoint.path_mtu, peer.path_mtu)));
    ibv_qp_attr ready{};
    ready.qp_state = IBV_QPS_RTR;
    ready.path_mtu = mtu;
    ready.dest_qp_num = peer.qp_num;
    ready.rq_psn = peer.psn;
    ready.max_dest_rd_atomic = endpoint.reads_max;
    ready.min_rnr_timer = rnr_timer_640_us;
    VFMGR_TRY(ready.ah_attr, address_of(endpoint, peer));
    VFMGR_CHECK(modify(ready,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                           IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                       "RTR"));
    ibv_qp_attr sending{};
    sending.qp_state = IBV_QPS_RTS;
    sending.timeout = endpoint.software ? ack_timeout_of_software : ack_timeout_of_hardware;
    sending.retry_cnt = retries;
    sending.rnr_retry = retries;
    sending.sq_psn = end_.psn;
    sending.max_rd_atomic =
        std::min(endpoint.reads_issued_max, std::max<std::uint8_t>(peer.reads_max, 1));
    return modify(sending,
                  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
                  "RTS");
}

Result<void> QueuePair::receive(std::uint64_t id, Sge into, std::optional<Sge> beyond) {
    std::array sges{element(into), element(beyond.value_or(Sge()))};
    ibv_recv_wr request{};
    request.wr_id = id;
    request.sg_list = sges.data();
    request.num_sge = beyond ? 2 : 1;
    ibv_recv_wr* bad = nullptr;
    return verbs_result(pair_->context, "a receive can't be posted", "ibv_post_recv",
                        ibv_post_recv(pair_.get(), &request, &bad));
}

Result<void> QueuePair::post(ibv_send_wr& first) {
    ibv_send_wr* bad = nullptr;
    return verbs_result(pair_->context, "a request can't be posted", "ibv_post_send",
                        ibv_post_send(pair_.get(), &first, &bad));
}

void QueuePair::address(ibv_send_wr& request) const {
    if (peer_address_) request.wr.ud = {peer_address_.get(), peer_number_, datagram_q_key};
}

Result<void> QueuePair::post_one(ibv_send_wr& request, Sge const& local) {
    ibv_sge sge = element(local);
    request.sg_list = &sge;
    request.num_sge = 1;
    request.send_flags = IBV_SEND_SIGNALED;
    bool const reads = request.opcode == IBV_WR_RDMA_READ;
    if (!reads && local.bytes.size() <= inline_bytes_max_) request.send_flags |= IBV_SEND_INLINE;
    return post(request);
}

Result<void> QueuePair::send(std::uint64_t id, Sge from) {
    ibv_send_wr request{};
    request.wr_id = id;
    request.opcode = IBV_WR_SEND;
    address(request);
    return post_one(request, from);
}

Result<void> QueuePair::transfer(std::uint64_t id, TransferDirection direction,
                                 RemoteTransfer const& what) {
    ibv_send_wr request{};
    request.wr_id = id;
    if (direction == TransferDirection::read)
        request.opcode = IBV_WR_RDMA_READ;
    else
        request.opcode = what.notify ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    request.imm_data = htonl(what.notify.value_or(0));
    request.wr.rdma = {what.address, what.key};
    return post_one(request, what.local);
}

bool QueuePair::to_error() {
    ibv_qp_attr failed{};
    failed.qp_state = IBV_QPS_ERR;
    return ibv_modify_qp(pair_.get(), &failed, IBV_QP_STATE) == 0;
}

// If to_error() fails, the device has gone, and there is nothing left to wait for.
void QueuePair::break_off() {
    broken_off_ = true;
    static_cast<void>(to_error());
}

void QueuePair::shut(Deadline deadline) {
    // The last posted requests are flushed after all earlier ones. The receive is posted before
    // ERR: SoftRoCE ignores receives posted after it has flushed.
    constexpr std::uint64_t last = ~std::uint64_t{0};
    ibv_recv_wr receive_last{};
    receive_last.wr_id = last;
    ibv_send_wr send_last{};
    send_last.wr_id = last;
    send_last.opcode = IBV_WR_SEND;
    send_last.send_flags = IBV_SEND_SIGNALED;
    address(send_last);
    ibv_recv_wr* bad_receive = nullptr;
    ibv_send_wr* bad_send = nullptr;
    unsigned awaited = 0;
    if (!broken_off_ && ibv_post_recv(pair_.get(), &receive_last, &bad_receive) == 0) ++awaited;
    if (!to_error()) return;
    // SoftRoCE's provider reads the address of each datagram, and without a peer there is none.
    bool const sends = pair_->qp_type != IBV_QPT_UD || peer_address_;
    if (sends && ibv_post_send(pair_.get(), &send_last, &bad_send) == 0) ++awaited;
    completions_->drain(last, awaited, deadline);
}

Result<ibv_ah_attr> QueuePair::route() const {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr made{};
    VFMGR_CHECK(verbs_result(pair_->context, "the queue pair's peer can't be read", "ibv_query_qp",
                             ibv_query_qp(pair_.get(), &attributes, IBV_QP_AV, &made)));
    return attributes.ah_attr;
}

Result<QueuePairs> QueuePairs::make(Endpoint const& endpoint, QueuePairOptions size,
                                    unsigned remote_access, std::size_t count) {
    VFMGR_TRY(auto queue,
              CompletionQueue::make(endpoint.context.get(), queue_entries(size, count)));
    QueuePairs made{std::make_shared<CompletionQueue>(std::move(queue)), {}};
    for (std::size_t i = 0; i < count; ++i) {
        VFMGR_TRY(auto pair, QueuePair::make(endpoint, size, remote_access, made.queue));
        made.pairs.push_back(std::move(pair));
    }
    return made;
}

void QueuePairs::shut() {
    auto const until = std::chrono::steady_clock::now() + drain_wait;
    for (auto& pair : pairs) pair.shut(until);
}

}  // namespace vfmgr::verify
