// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/traffic/receiver.hpp"

#include <fmt/format.h>
#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "api/os/descriptor.hpp"
#include "vfmgr/proof/echo.hpp"
#include "vfmgr/proof/interop/tcp_stream.hpp"
#include "vfmgr/rdma/faults.hpp"
#include "vfmgr/rdma/memory.hpp"

namespace vfmgr::stream {
namespace {

constexpr std::uint32_t batch_max = 64;
static_assert(batch_max <= arrivals_max);
// Approximately what the kernel keeps beside each packet.
constexpr std::size_t overhead_bytes = 1024;
constexpr std::size_t buffer_bytes_min = 8 << 20;
constexpr std::size_t buffer_bytes_max = 64 << 20;  // of the kernel's memory

Result<FileDescriptor> open_socket(ReceiveOptions const& options) {
    auto made = verify::open_socket({options.local, options.port, {}});
    if (!made && made.error().causes.front().code == "EADDRINUSE")
        made.error().remedy = fmt::format(
            "stop the program that uses UDP port {} (ss -ulpn sport = {}), or take another --port",
            options.port, options.port);
    return made;
}

// About as long as the ring: a receiver that is delayed for a moment loses nothing. Only
// CAP_NET_ADMIN may exceed net.core.rmem_max.
void make_room(int fd, RingShape const& ring) {
    auto const bytes = static_cast<int>(std::clamp<std::size_t>(
        ring.packets * (ring.packet_bytes + overhead_bytes), buffer_bytes_min, buffer_bytes_max));
    if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
        ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

// The receiver's end of a stream over a UDP socket.
class UdpReceiver final : public Receiver {
  public:
    static Result<std::unique_ptr<Receiver>> open(ReceiveOptions const& options,
                                                  Opening const& opening) {
        VFMGR_TRY(auto const packets, stream::ring_packets(options.ring, opening, std::nullopt));
        RingShape const shape{run_number(opening.run), opening.packet_bytes, packets};
        VFMGR_TRY(auto fd, open_socket(options));
        make_room(fd.get(), shape);
        VFMGR_TRY(auto ring, options.make_ring(shape, nullptr));
        return std::make_unique<UdpReceiver>(std::move(fd), std::move(ring), packets);
    }

    UdpReceiver(FileDescriptor socket, std::unique_ptr<RingMemory> ring, std::uint32_t packets)
        : socket_(std::move(socket)),
          ring_(std::move(ring)),
          packets_(packets),
          sges_(std::min(batch_max, packets)),
          messages_(sges_.size()) {}

    Acceptance acceptance() const override { return {.udp_port = interop::port_of(socket_)}; }
    int fd() const override { return socket_.get(); }
    std::uint32_t ring_packets() const override { return packets_; }
    RingPlace ring_place() const override { return ring_->place(); }

    Result<std::size_t> take(Tally& tally) override {
        auto const room = std::min<std::uint32_t>(batch_max, packets_ - next_);
        for (std::uint32_t i = 0; i < room; ++i) {
            auto const slot = ring_->slot(next_ + i).bytes;
            sges_[i] = {slot.data(), slot.size()};
            messages_[i] = {};
            messages_[i].msg_hdr.msg_iov = &sges_[i];
            messages_[i].msg_hdr.msg_iovlen = 1;
        }
        int const got = ::recvmmsg(fd(), messages_.data(), room, MSG_DONTWAIT, nullptr);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
        if (got < 0)
            return fail({Problem::kernel_refused,
                         "the UDP socket can't be read",
                         "check the kernel log for the reason: dmesg | tail",
                         {errno_cause("recvmmsg", errno)}});
        auto const count = static_cast<std::uint32_t>(got);
        arrived_.clear();
        for (std::uint32_t i = 0; i < count; ++i)
            if ((messages_[i].msg_hdr.msg_flags & MSG_TRUNC) != 0)
                tally.take(messages_[i].msg_len, std::nullopt);
            else
                arrived_.push_back({next_ + i, messages_[i].msg_len});
        if (!arrived_.empty()) VFMGR_CHECK(ring_->take(arrived_, tally));
        next_ = (next_ + count) % packets_;
        return count;
    }

    // Packets that found the socket's buffer full, or were damaged. Not SO_RXQ_OVFL: that arrives
    // with a packet, and no packet follows the last one.
    std::optional<std::uint64_t> lost() override {
        std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
        socklen_t length = sizeof info;
        if (::getsockopt(fd(), SOL_SOCKET, SO_MEMINFO, info.data(), &length) != 0 ||
            length <= SK_MEMINFO_DROPS * sizeof info[0])
            return std::nullopt;
        lost_ += info[SK_MEMINFO_DROPS] - drops_;
        drops_ = info[SK_MEMINFO_DROPS];
        return lost_;
    }

  private:
    FileDescriptor socket_;
    std::unique_ptr<RingMemory> ring_;
    std::uint32_t packets_;
    std::uint32_t next_ = 0;  // slot
    std::uint64_t lost_ = 0;
    std::uint32_t drops_ = 0;  // the kernel's count at the last call
    std::vector<iovec> sges_;
    std::vector<mmsghdr> messages_;
    std::vector<Arrival> arrived_;
};

using verify::ud_header_bytes;

// The queue pair has one more receive, for its end, and the completion queue some slack
// (vfmgr/rdma/queue_pair.cpp).
constexpr int receives_kept = 32;

Result<std::uint32_t> receives_max(verify::Endpoint const& endpoint) {
    ibv_device_attr limits{};
    if (int const error = ibv_query_device(endpoint.context.get(), &limits); error != 0)
        return fail(verify::verbs_error(endpoint.context.get(), "the device's limits can't be read",
                                        "ibv_query_device", error));
    return static_cast<std::uint32_t>(
        std::max(std::min(limits.max_qp_wr, limits.max_cqe) - receives_kept, 1));
}

// The receiver's end of a stream over unreliable datagrams: as many receives are outstanding as the
// ring has slots, and each is posted again when its packet is counted.
class UdReceiver final : public Receiver {
  public:
    // The opening has the sender's end.
    static Result<std::unique_ptr<Receiver>> open(ReceiveOptions const& options,
                                                  Opening const& opening) {
        VFMGR_TRY(auto endpoint, verify::open_endpoint({options.local, {}}, verify::endpoint_wait));
        VFMGR_CHECK(check_ud_packet(endpoint, opening.packet_bytes));
        VFMGR_TRY(auto const most, receives_max(endpoint));
        VFMGR_TRY(auto const packets, stream::ring_packets(options.ring, opening, most));
        VFMGR_TRY(auto header, verify::RegisteredMemory::make(endpoint.pd.get(), ud_header_bytes,
                                                              IBV_ACCESS_LOCAL_WRITE, "headers"));
        VFMGR_TRY(
            auto ring,
            options.make_ring({run_number(opening.run), opening.packet_bytes, packets}, &endpoint));
        verify::QueuePairOptions const size{verify::Transport::ud, 1, packets, 2};
        VFMGR_TRY(auto pair, verify::QueuePair::make(endpoint, size, 0));
        auto made = std::make_unique<UdReceiver>(std::move(endpoint), std::move(header),
                                                 std::move(ring), std::move(pair), packets);
        for (std::uint32_t i = 0; i < packets; ++i) VFMGR_CHECK(made->receive(i));
        VFMGR_CHECK(made->pair_.connect(made->endpoint_, *opening.pair));
        return made;
    }

    UdReceiver(verify::Endpoint endpoint, verify::RegisteredMemory header,
               std::unique_ptr<RingMemory> ring, verify::QueuePair pair, std::uint32_t packets)
        : endpoint_(std::move(endpoint)),
          header_(std::move(header)),
          ring_(std::move(ring)),
          pair_(std::move(pair)),
          packets_(packets) {}
    ~UdReceiver() override { pair_.shut(std::chrono::steady_clock::now() + verify::drain_wait); }

    Acceptance acceptance() const override { return {.pair = pair_.end()}; }
    int fd() const override { return pair_.completions().fd(); }
    std::uint32_t ring_packets() const override { return packets_; }
    RingPlace ring_place() const override { return ring_->place(); }

    Result<void> arm() override {
        pair_.completions().take_events();
        return pair_.completions().arm();
    }

    Result<std::size_t> take(Tally& tally) override {
        VFMGR_TRY(auto const found, pair_.completions().poll(room_));
        VFMGR_CHECK(verify::check_completions(found, "a receive"));
        if (found.empty()) return 0;
        arrived_.clear();
        constexpr auto header = static_cast<std::uint32_t>(ud_header_bytes);
        for (auto const& completion : found) {
            auto const slot = static_cast<std::uint32_t>(completion.wr_id);
            auto const most = static_cast<std::uint32_t>(ring_->slot(slot).bytes.size());
            arrived_.push_back(
                {slot, std::clamp(completion.byte_len, header, header + most) - header});
        }
        VFMGR_CHECK(ring_->take(arrived_, tally));
        for (auto const& one : arrived_) VFMGR_CHECK(receive(one.slot));
        return found.size();
    }

    Result<void> check() const override { return verify::check_async(endpoint_.context.get()); }

  private:
    // The GRH precedes each packet, and goes to main memory whatever the ring is made of.
    Result<void> receive(std::uint32_t slot) {
        return pair_.receive(slot, {header_.bytes().first(ud_header_bytes), header_.local_key()},
                             ring_->slot(slot));
    }

    // Destroyed from the last to the first.
    verify::Endpoint endpoint_;
    verify::RegisteredMemory header_;  // of all packets: never read
    std::unique_ptr<RingMemory> ring_;
    verify::QueuePair pair_;

    std::uint32_t packets_;
    std::vector<ibv_wc> room_ = std::vector<ibv_wc>(arrivals_max);
    std::vector<Arrival> arrived_;
};

}  // namespace

// Also runs before a sender connects: the user who starts the receiver is still there to read why
// it can't receive.
Result<void> Receiver::check(ReceiveOptions const& options, Over over) {
    if (over == Over::udp) return {};
    VFMGR_TRY(auto const endpoint,
              verify::open_endpoint({options.local, {}}, verify::endpoint_wait));
    VFMGR_CHECK(options.make_ring({0, endpoint.path_mtu, 1}, &endpoint));
    return {};
}

Result<std::unique_ptr<Receiver>> Receiver::open(ReceiveOptions const& options,
                                                 Opening const& opening) {
    return opening.over == Over::ud ? UdReceiver::open(options, opening)
                                    : UdpReceiver::open(options, opening);
}

Result<void> check_ud_packet(verify::Endpoint const& endpoint, std::uint32_t packet_bytes) {
    if (packet_bytes <= endpoint.path_mtu) return {};
    return fail(Problem::unsupported,
                fmt::format("packets of {} bytes do not fit a datagram of {}, whose path MTU is {}",
                            packet_bytes, endpoint.device, endpoint.path_mtu),
                fmt::format("send --packet-bytes {}, or raise the netdev's MTU on both machines",
                            endpoint.path_mtu));
}

}  // namespace vfmgr::stream
