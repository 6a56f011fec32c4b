// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/udp_source.hpp"

#include <fmt/format.h>
#include <linux/sock_diag.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "guest-tools/stock/tcp_stream.hpp"
#include "guest-tools/verify/socket_address.hpp"

namespace vfmgr::stream {
namespace {

using verify::SocketAddress;
constexpr std::uint32_t batch_max = 64;
static_assert(batch_max <= arrivals_max);
// What the kernel keeps beside each packet, about.
constexpr std::size_t overhead_bytes = 1024;
constexpr std::size_t buffer_bytes_min = 8 << 20;
constexpr std::size_t buffer_bytes_max = 64 << 20;  // of the kernel's memory

Error no_socket(UdpSource::Wish const& wish, char const* call) {
    int const error_number = errno;
    Error error{Problem::kernel_refused,
                fmt::format("no UDP socket on {} port {}", to_string(wish.local), wish.port),
                "see the cause"};
    if (error_number == EADDRINUSE)
        error.remedy = fmt::format(
            "stop the program that uses UDP port {} (ss -ulpn sport = {}), or take another --port",
            wish.port, wish.port);
    else if (error_number == EADDRNOTAVAIL)
        error.remedy = "name one of this machine's addresses: ip -brief address";
    error.causes.push_back(errno_cause(call, error_number));
    return error;
}

// About as long as the ring, so that a receiver that is held up for a moment loses nothing. Beyond
// net.core.rmem_max only for those who may (CAP_NET_ADMIN).
void make_room(int fd, UdpSource::Wish const& wish) {
    auto const bytes = static_cast<int>(
        std::clamp<std::size_t>(wish.ring.packets * (wish.ring.packet_bytes + overhead_bytes),
                                buffer_bytes_min, buffer_bytes_max));
    if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) != 0)
        ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

}  // namespace

Result<UdpSource> UdpSource::open(Wish const& wish, RingMaker const& rings) {
    bool const v4 = wish.local.family == IpAddress::Family::v4;
    FileDescriptor fd(
        ::socket(v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return fail(no_socket(wish, "socket"));
    make_room(fd.get(), wish);
    auto const address = SocketAddress::of(wish.local, wish.port);
    if (::bind(fd.get(), address.get(), address.length) != 0) return fail(no_socket(wish, "bind"));
    VFMGR_TRY(auto memory, rings.make(wish.ring, nullptr));
    return UdpSource(std::move(fd), std::move(memory), wish.ring.packets);
}

UdpSource::UdpSource(FileDescriptor socket, std::unique_ptr<RingMemory> memory,
                     std::uint32_t packets)
    : socket_(std::move(socket)),
      memory_(std::move(memory)),
      packets_(packets),
      pieces_(std::min(batch_max, packets)),
      messages_(pieces_.size()) {}

std::uint16_t UdpSource::port() const {
    return stock::port_of(socket_);
}

Result<std::size_t> UdpSource::take(Tally& tally) {
    auto const room = std::min<std::uint32_t>(batch_max, packets_ - next_);
    for (std::uint32_t i = 0; i < room; ++i) {
        auto const slot = memory_->slot(next_ + i).bytes;
        pieces_[i] = {slot.data(), slot.size()};
        messages_[i] = {};
        messages_[i].msg_hdr.msg_iov = &pieces_[i];
        messages_[i].msg_hdr.msg_iovlen = 1;
    }
    int const got = ::recvmmsg(fd(), messages_.data(), room, MSG_DONTWAIT, nullptr);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got < 0)
        return fail({Problem::kernel_refused,
                     "the UDP socket can't be read",
                     "look in the kernel's log for the reason",
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

// Not SO_RXQ_OVFL: that comes with a packet, and nothing comes behind the last.
std::optional<std::uint64_t> UdpSource::lost() {
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
