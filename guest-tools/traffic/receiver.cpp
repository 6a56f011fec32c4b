// SPDX-License-Identifier: Apache-2.0
// Receives the packets of a traffic test, by UDP or as unreliable datagrams of RDMA. One thread.
#include "guest-tools/traffic/receiver.hpp"

#include <fmt/format.h>
#include <linux/sock_diag.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "api/os/socket_address.hpp"
#include "vfmgr/proof/interop/tcp_stream.hpp"
#include "vfmgr/rdma/faults.hpp"

namespace vfmgr::stream {

// Also runs before a sender connects: the user who starts a receiver is there to read why it can't.
Result<void> Receiver::check(Options const& options, Over over) {
    if (over == Over::udp) return {};
    VFMGR_TRY(auto const endpoint,
              verify::open_endpoint({options.local, {}}, verify::endpoint_wait));
    VFMGR_CHECK(options.rings.make({0, endpoint.path_mtu, 1}, &endpoint));
    return {};
}

Result<Receiver> Receiver::open(Options const& options, Opening const& opening) {
    if (opening.over == Over::ud) {
        VFMGR_TRY(auto ud, UdReceiver::open(options.local, options.ring, options.rings, opening));
        return Receiver(Either(std::move(ud)));
    }
    VFMGR_TRY(auto const packets, stream::ring_packets(options.ring, opening, std::nullopt));
    RingShape const shape{run_number(opening.run), opening.packet_bytes, packets};
    VFMGR_TRY(auto udp, UdpReceiver::open({options.local, options.port, shape}, options.rings));
    return Receiver(Either(std::move(udp)));
}

Acceptance Receiver::acceptance() const {
    Acceptance made;
    if (auto const* const udp = std::get_if<UdpReceiver>(&either_))
        made.udp_port = udp->port();
    else
        made.pair = std::get<UdReceiver>(either_).end();
    return made;
}

int Receiver::fd() const {
    return std::visit([](auto const& one) { return one.fd(); }, either_);
}

Result<std::size_t> Receiver::take(Tally& tally) {
    return std::visit([&](auto& one) { return one.take(tally); }, either_);
}

Result<void> Receiver::arm() {
    auto* const ud = std::get_if<UdReceiver>(&either_);
    return ud != nullptr ? ud->arm() : Result<void>{};
}

Result<void> Receiver::check() const {
    auto const* const ud = std::get_if<UdReceiver>(&either_);
    return ud != nullptr ? ud->check() : Result<void>{};
}

std::optional<std::uint64_t> Receiver::lost() {
    auto* const udp = std::get_if<UdpReceiver>(&either_);
    return udp != nullptr ? udp->lost() : std::nullopt;
}

std::uint32_t Receiver::ring_packets() const {
    return std::visit([](auto const& one) { return one.ring_packets(); }, either_);
}

RingPlace Receiver::ring_place() const {
    return std::visit([](auto const& one) { return one.ring_place(); }, either_);
}

namespace {

constexpr std::uint32_t batch_max = 64;
static_assert(batch_max <= arrivals_max);
// Approximately what the kernel keeps beside each packet.
constexpr std::size_t overhead_bytes = 1024;
constexpr std::size_t buffer_bytes_min = 8 << 20;
constexpr std::size_t buffer_bytes_max = 64 << 20;  // of the kernel's memory

Error no_socket(UdpReceiver::Options const& options, char const* call) {
    int const error_number = errno;
    Error error{Problem::kernel_refused,
                fmt::format("can't open a UDP socket on {} port {}", to_string(options.local),
                            options.port),
                "check the cause: it is the kernel's own error"};
    if (error_number == EADDRINUSE)
        error.remedy = fmt::format(
            "stop the program that uses UDP port {} (ss -ulpn sport = {}), or take another --port",
            options.port, options.port);
    else if (error_number == EADDRNOTAVAIL)
        error.remedy = "name one of this machine's addresses: ip -brief address";
    error.causes.push_back(errno_cause(call, error_number));
    return error;
}

// About as long as the ring: a receiver that is delayed for a moment loses nothing. Only
// CAP_NET_ADMIN may exceed net.core.rmem_max.
void make_room(int fd, UdpReceiver::Options const& options) {
    auto const bytes = static_cast<int>(
        std::clamp<std::size_t>(options.ring.packets * (options.ring.packet_bytes + overhead_bytes),
                                buffer_bytes_min, buffer_bytes_max));
    if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
        ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

}  // namespace

Result<UdpReceiver> UdpReceiver::open(Options const& options, RingMaker const& rings) {
    bool const v4 = options.local.family == IpAddress::Family::v4;
    FileDescriptor fd(
        ::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return fail(no_socket(options, "socket"));
    make_room(fd.get(), options);
    auto const address = SocketAddress::of(options.local, options.port);
    if (::bind(fd.get(), address.get(), address.length) != 0)
        return fail(no_socket(options, "bind"));
    VFMGR_TRY(auto memory, rings.make(options.ring, nullptr));
    return UdpReceiver(std::move(fd), std::move(memory), options.ring.packets);
}

UdpReceiver::UdpReceiver(FileDescriptor socket, std::unique_ptr<RingMemory> memory,
                         std::uint32_t packets)
    : socket_(std::move(socket)),
      memory_(std::move(memory)),
      packets_(packets),
      sges_(std::min(batch_max, packets)),
      messages_(sges_.size()) {}

std::uint16_t UdpReceiver::port() const {
    return interop::port_of(socket_);
}

Result<std::size_t> UdpReceiver::take(Tally& tally) {
    auto const room = std::min<std::uint32_t>(batch_max, packets_ - next_);
    for (std::uint32_t i = 0; i < room; ++i) {
        auto const slot = memory_->slot(next_ + i).bytes;
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
            tally.take_longer();
        else
            arrived_.push_back({next_ + i, messages_[i].msg_len});
    if (!arrived_.empty()) VFMGR_CHECK(memory_->take(arrived_, tally));
    next_ = (next_ + count) % packets_;
    return count;
}

// Not SO_RXQ_OVFL: that arrives with a packet, and no packet follows the last one.
std::optional<std::uint64_t> UdpReceiver::lost() {
    std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
    socklen_t length = sizeof info;
    if (::getsockopt(fd(), SOL_SOCKET, SO_MEMINFO, info.data(), &length) != 0 ||
        length <= SK_MEMINFO_DROPS * sizeof info[0])
        return std::nullopt;
    lost_ += info[SK_MEMINFO_DROPS] - drops_;
    drops_ = info[SK_MEMINFO_DROPS];
    return lost_;
}

namespace {

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
