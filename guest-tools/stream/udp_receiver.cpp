// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/udp_receiver.hpp"

#include <fmt/format.h>
#include <linux/sock_diag.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "api/os/socket_address.hpp"
#include "guest-tools/interop/tcp_stream.hpp"

namespace vfmgr::stream {
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

}  // namespace vfmgr::stream
