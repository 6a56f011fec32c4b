// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/ud_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "guest-tools/verify/faults.hpp"

namespace vfmgr::stream {
namespace {

using verify::ud_header_bytes;

// The queue pair has one receive more, for its end, and the completion queue some slack
// (guest-tools/verify/queue_pair.cpp).
constexpr int receives_kept = 32;

Result<std::uint32_t> receives_max(verify::VerbsPort const& port) {
    ibv_device_attr limits{};
    if (int const error = ibv_query_device(port.context.get(), &limits); error != 0)
        return fail(verify::verbs_error(port.context.get(), "the device does not tell its limits",
                                        "ibv_query_device", error));
    return static_cast<std::uint32_t>(
        std::max(std::min(limits.max_qp_wr, limits.max_cqe) - receives_kept, 1));
}

}  // namespace

Result<void> check_ud_packet(verify::VerbsPort const& port, std::uint32_t packet_bytes) {
    if (packet_bytes <= port.path_mtu) return {};
    return fail(Problem::unsupported,
                fmt::format("packets of {} bytes do not fit a datagram of {}, whose path MTU is {}",
                            packet_bytes, port.device, port.path_mtu),
                fmt::format("send --packet-bytes {}, or raise the netdev's MTU on both machines",
                            port.path_mtu));
}

Result<UdSource> UdSource::open(IpAddress const& local, RingWish const& wish,
                                Opening const& opening) {
    VFMGR_TRY(auto port, verify::find_port({local, {}}, verify::port_wait));
    VFMGR_CHECK(check_ud_packet(port, opening.packet_bytes));
    VFMGR_TRY(auto const most, receives_max(port));
    VFMGR_TRY(auto const packets, stream::ring_packets(wish, opening, most));
    VFMGR_TRY(auto domain, verify::make_domain(port));
    // The GRH comes before each packet, so a slot has room for it.
    auto const slot_bytes = ud_header_bytes + opening.packet_bytes;
    VFMGR_TRY(auto memory,
              verify::RegisteredMemory::make(domain.get(), Ring::stride(slot_bytes) * packets,
                                             IBV_ACCESS_LOCAL_WRITE, "ring"));
    verify::QueuePairWish const size{verify::Transport::ud, 1, packets};
    VFMGR_TRY(auto pair, verify::QueuePair::make(domain.get(), port, size, 0));
    Ring const ring({memory.bytes(), memory.local_key()}, slot_bytes, packets);
    for (std::uint32_t i = 0; i < packets; ++i) VFMGR_CHECK(pair.receive(i, ring.slot(i)));
    VFMGR_CHECK(pair.connect(port, *opening.pair));
    return UdSource(std::make_unique<Rdma>(Rdma{std::move(port), std::move(domain),
                                                std::move(memory), std::move(pair)}),
                    ring);
}

UdSource::~UdSource() {
    if (rdma_) rdma_->pair.shut(std::chrono::steady_clock::now() + verify::drain_wait);
}

int UdSource::fd() const {
    return rdma_->pair.completions().fd();
}

Result<void> UdSource::arm() {
    rdma_->pair.completions().take_events();
    return rdma_->pair.completions().arm();
}

Result<std::size_t> UdSource::take(Tally& tally) {
    VFMGR_TRY(auto const found, rdma_->pair.completions().poll(room_));
    VFMGR_CHECK(verify::check_completions(found, "a receive"));
    for (auto const& completion : found) {
        auto const slot = ring_.slot(completion.wr_id);
        auto const bytes =
            std::clamp<std::size_t>(completion.byte_len, ud_header_bytes, slot.bytes.size());
        tally.take(slot.bytes.subspan(ud_header_bytes, bytes - ud_header_bytes));
        VFMGR_CHECK(rdma_->pair.receive(completion.wr_id, slot));
    }
    return found.size();
}

Result<void> UdSource::check() const {
    return verify::check_async(rdma_->port.context.get());
}

}  // namespace vfmgr::stream
