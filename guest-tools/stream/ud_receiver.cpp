// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/ud_receiver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "guest-tools/verify/faults.hpp"

namespace vfmgr::stream {
namespace {

using verify::ud_header_bytes;

// The queue pair has one more receive, for its end, and the completion queue some slack
// (guest-tools/verify/queue_pair.cpp).
constexpr int receives_kept = 32;

Result<std::uint32_t> receives_max(verify::Endpoint const& endpoint) {
    ibv_device_attr limits{};
    if (int const error = ibv_query_device(endpoint.context.get(), &limits); error != 0)
        return fail(verify::verbs_error(endpoint.context.get(), "the device's limits can't be read",
                                        "ibv_query_device", error));
    return static_cast<std::uint32_t>(
        std::max(std::min(limits.max_qp_wr, limits.max_cqe) - receives_kept, 1));
}

}  // namespace

Result<void> check_ud_packet(verify::Endpoint const& endpoint, std::uint32_t packet_bytes) {
    if (packet_bytes <= endpoint.path_mtu) return {};
    return fail(Problem::unsupported,
                fmt::format("packets of {} bytes do not fit a datagram of {}, whose path MTU is {}",
                            packet_bytes, endpoint.device, endpoint.path_mtu),
                fmt::format("send --packet-bytes {}, or raise the netdev's MTU on both machines",
                            endpoint.path_mtu));
}

Result<UdReceiver> UdReceiver::open(IpAddress const& local, RingOptions const& options,
                                    RingMaker const& rings, Opening const& opening) {
    VFMGR_TRY(auto endpoint, verify::open_endpoint({local, {}}, verify::endpoint_wait));
    VFMGR_CHECK(check_ud_packet(endpoint, opening.packet_bytes));
    VFMGR_TRY(auto const most, receives_max(endpoint));
    VFMGR_TRY(auto const packets, stream::ring_packets(options, opening, most));
    VFMGR_TRY(auto header, verify::RegisteredMemory::make(endpoint.pd.get(), ud_header_bytes,
                                                          IBV_ACCESS_LOCAL_WRITE, "headers"));
    VFMGR_TRY(auto ring,
              rings.make({run_number(opening.run), opening.packet_bytes, packets}, &endpoint));
    verify::QueuePairOptions const size{verify::Transport::ud, 1, packets, 2};
    VFMGR_TRY(auto pair, verify::QueuePair::make(endpoint, size, 0));
    auto rdma = std::make_unique<Rdma>(
        Rdma{std::move(endpoint), std::move(header), std::move(ring), std::move(pair)});
    for (std::uint32_t i = 0; i < packets; ++i) VFMGR_CHECK(rdma->receive(i));
    VFMGR_CHECK(rdma->pair.connect(rdma->endpoint, *opening.pair));
    return UdReceiver(std::move(rdma), packets);
}

// The GRH precedes each packet, and goes to main memory whatever the ring is made of.
Result<void> UdReceiver::Rdma::receive(std::uint32_t slot) {
    return pair.receive_split(
        slot,
        {verify::Sge{header.bytes().first(ud_header_bytes), header.local_key()}, ring->slot(slot)});
}

UdReceiver::~UdReceiver() {
    if (rdma_) rdma_->pair.shut(std::chrono::steady_clock::now() + verify::drain_wait);
}

int UdReceiver::fd() const {
    return rdma_->pair.completions().fd();
}

Result<void> UdReceiver::arm() {
    rdma_->pair.completions().take_events();
    return rdma_->pair.completions().arm();
}

Result<std::size_t> UdReceiver::take(Tally& tally) {
    VFMGR_TRY(auto const found, rdma_->pair.completions().poll(room_));
    VFMGR_CHECK(verify::check_completions(found, "a receive"));
    if (found.empty()) return 0;
    arrived_.clear();
    constexpr auto header = static_cast<std::uint32_t>(ud_header_bytes);
    for (auto const& completion : found) {
        auto const slot = static_cast<std::uint32_t>(completion.wr_id);
        auto const most = static_cast<std::uint32_t>(rdma_->ring->slot(slot).bytes.size());
        arrived_.push_back({slot, std::clamp(completion.byte_len, header, header + most) - header});
    }
    VFMGR_CHECK(rdma_->ring->take(arrived_, tally));
    for (auto const& one : arrived_) VFMGR_CHECK(rdma_->receive(one.slot));
    return found.size();
}

Result<void> UdReceiver::check() const {
    return verify::check_async(rdma_->endpoint.context.get());
}

}  // namespace vfmgr::stream
