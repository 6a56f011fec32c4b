// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/ud_sender.hpp"

#include "guest-tools/stream/packet.hpp"
#include "guest-tools/stream/ud_receiver.hpp"
#include "guest-tools/verify/bench.hpp"

namespace vfmgr::stream {
namespace {

// In flight while the next one is prepared.
constexpr std::uint32_t chunks_kept = 4;
constexpr std::chrono::seconds chunk_wait{10};

}  // namespace

Result<UdSender> UdSender::open(Options const& options) {
    VFMGR_TRY(auto endpoint, verify::open_endpoint({options.local, {}}, verify::endpoint_wait));
    auto const packet_bytes = options.packet_bytes.value_or(endpoint.path_mtu);
    VFMGR_CHECK(check_ud_packet(endpoint, packet_bytes));
    auto const slots = options.chunk * chunks_kept;
    VFMGR_TRY(auto memory,
              verify::RegisteredMemory::make(endpoint.pd.get(), Ring::stride(packet_bytes) * slots,
                                             0, "packets"));
    verify::QueuePairOptions const size{verify::Transport::ud, slots, 0};
    VFMGR_TRY(auto pair, verify::QueuePair::make(endpoint, size, 0));
    Ring const ring({memory.bytes(), memory.local_key()}, packet_bytes, slots);
    return UdSender(
        std::make_unique<Rdma>(Rdma{std::move(endpoint), std::move(memory), std::move(pair)}), ring,
        packet_bytes, options);
}

UdSender::UdSender(std::unique_ptr<Rdma> rdma, Ring slots, std::uint32_t packet_bytes,
                   Options const& options)
    : rdma_(std::move(rdma)),
      slots_(slots),
      packet_bytes_(packet_bytes),
      chunk_(options.chunk),
      run_(options.run),
      requests_(options.chunk),
      sges_(options.chunk) {
    for (std::uint32_t i = 0; i < slots_.count(); ++i) prepare_packet(slots_.slot(i).bytes, run_);
}

UdSender::~UdSender() {
    if (rdma_) rdma_->pair.shut(std::chrono::steady_clock::now() + verify::drain_wait);
}

Result<void> UdSender::aim(QueuePairEnd const& receiver) {
    return rdma_->pair.connect(rdma_->endpoint, receiver);
}

Result<void> UdSender::send(std::uint64_t first, std::uint64_t count) {
    if (outstanding_ == chunks_kept) VFMGR_CHECK(await_chunk());
    auto const slot = next_chunk_ % chunks_kept * chunk_;
    for (std::uint64_t i = 0; i < count; ++i) {
        auto const packet = slots_.slot(slot + i);
        number_packet(packet.bytes, run_, first + i);
        sges_[i] = {reinterpret_cast<std::uint64_t>(packet.bytes.data()), packet_bytes_,
                    packet.key};
        auto& request = requests_[i];
        request = {};
        request.wr_id = next_chunk_;
        request.opcode = IBV_WR_SEND;
        request.sg_list = &sges_[i];
        request.num_sge = 1;
        if (i + 1 == count) request.send_flags = IBV_SEND_SIGNALED;
        request.next = i + 1 == count ? nullptr : &requests_[i + 1];
        rdma_->pair.address(request);
    }
    VFMGR_CHECK(rdma_->pair.post(requests_.front()));
    ++next_chunk_;
    ++outstanding_;
    return {};
}

Result<void> UdSender::await_chunk() {
    VFMGR_TRY(auto const found,
              verify::await(rdma_->pair.completions(), room_,
                            std::chrono::steady_clock::now() + chunk_wait, "a chunk"));
    outstanding_ -= std::min<std::uint64_t>(outstanding_, found.size());
    return {};
}

Result<void> UdSender::flush() {
    while (outstanding_ > 0) VFMGR_CHECK(await_chunk());
    return {};
}

}  // namespace vfmgr::stream
