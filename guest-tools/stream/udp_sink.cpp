// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/udp_sink.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <cerrno>

#include "guest-tools/stream/packet.hpp"
#include "guest-tools/verify/echo.hpp"
#include "guest-tools/verify/socket_address.hpp"

namespace vfmgr::stream {
namespace {

using verify::SocketAddress;
constexpr int room_wait_ms = 10'000;

bool is_v4(UdpSink::Wish const& wish) {
    return wish.to.family == IpAddress::Family::v4;
}

Error no_sender(UdpSink::Wish const& wish, char const* call, int error_number) {
    return {Problem::kernel_refused,
            fmt::format("no UDP socket from {} to {}", to_string(wish.local), to_string(wish.to)),
            fmt::format("look at the route: ip route get {}", to_string(wish.to)),
            {errno_cause(call, error_number)}};
}

// DO, and not PROBE: what the path has said about its MTU is respected, and an error here.
int forbid_fragments(int fd, UdpSink::Wish const& wish) {
    if (is_v4(wish)) {
        int const discover = IP_PMTUDISC_DO;
        return ::setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
    }
    int const discover = IPV6_PMTUDISC_DO;
    return ::setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &discover, sizeof discover);
}

// Of a connected socket; 0 when the kernel does not tell.
std::uint32_t path_mtu(int fd, UdpSink::Wish const& wish) {
    int mtu = 0;
    socklen_t length = sizeof mtu;
    int const failed = is_v4(wish) ? ::getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &length)
                                   : ::getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &length);
    return failed != 0 || mtu < 0 ? 0 : static_cast<std::uint32_t>(mtu);
}

Error too_long(UdpSink::Wish const& wish, std::uint32_t mtu) {
    auto const most = verify::full_datagram_bytes(mtu, wish.to.family);
    return {Problem::unsupported,
            fmt::format("packets of {} bytes do not fit the path to {}: its MTU of {} leaves {} "
                        "bytes, and they are not fragmented",
                        wish.packet_bytes, to_string(wish.to), mtu, most),
            fmt::format("send --packet-bytes {}, or raise the MTU on the whole path", most)};
}

}  // namespace

Result<UdpSink> UdpSink::open(Wish const& wish) {
    FileDescriptor fd(::socket(is_v4(wish) ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd) return fail(no_sender(wish, "socket", errno));
    auto const local = SocketAddress::of(wish.local, 0);
    if (::bind(fd.get(), local.get(), local.length) != 0)
        return fail(no_sender(wish, "bind", errno));
    if (forbid_fragments(fd.get(), wish) != 0)
        return fail(no_sender(wish, "setsockopt IP_MTU_DISCOVER", errno));
    UdpSink made(std::move(fd), wish);
    // To any port: the MTU is the path's.
    VFMGR_CHECK(made.aim(default_port));
    auto const mtu = path_mtu(made.socket_.get(), wish);
    if (mtu != 0 && wish.packet_bytes > verify::full_datagram_bytes(mtu, wish.to.family))
        return fail(too_long(wish, mtu));
    return made;
}

UdpSink::UdpSink(FileDescriptor socket, Wish const& wish)
    : socket_(std::move(socket)),
      wish_(wish),
      memory_(std::size_t{wish.packet_bytes} * wish.chunk),
      pieces_(wish.chunk),
      messages_(wish.chunk) {
    for (std::uint64_t i = 0; i < wish.chunk; ++i) {
        prepare_packet(packet(i), wish.run);
        pieces_[i] = {packet(i).data(), packet(i).size()};
    }
}

std::span<std::byte> UdpSink::packet(std::uint64_t index) {
    return std::span(memory_).subspan(index * wish_.packet_bytes, wish_.packet_bytes);
}

Result<void> UdpSink::aim(std::uint16_t port) {
    auto const to = SocketAddress::of(wish_.to, port);
    if (::connect(socket_.get(), to.get(), to.length) != 0)
        return fail(no_sender(wish_, "connect", errno));
    return {};
}

Result<void> UdpSink::send(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
        number_packet(packet(i), wish_.run, first + i);
        messages_[i] = {};
        messages_[i].msg_hdr.msg_iov = &pieces_[i];
        messages_[i].msg_hdr.msg_iovlen = 1;
    }
    for (std::uint64_t done = 0; done < count;) {
        int const put = ::sendmmsg(socket_.get(), &messages_[done],
                                   static_cast<unsigned>(count - done), MSG_DONTWAIT);
        if (put > 0) done += static_cast<std::uint64_t>(put);
        if (put > 0 || errno == EINTR) continue;
        if (errno == EPERM) {  // nftables' verdict on this packet: lost, and not for the network
            ++filtered_;
            ++done;
            continue;
        }
        if (errno != EAGAIN) return fail(refused(errno));
        VFMGR_CHECK(await_room());
    }
    return {};
}

// A pause of the link, or a queue that is full, lets it wait.
Result<void> UdpSink::await_room() const {
    pollfd writable{socket_.get(), POLLOUT, 0};
    if (::poll(&writable, 1, room_wait_ms) != 0) return {};
    return fail(
        Problem::timed_out,
        fmt::format("nothing can be sent to {} for {} s", to_string(wish_.to), room_wait_ms / 1000),
        "look whether the link is down or paused: ip link; ethtool -S NETDEV");
}

Error UdpSink::refused(int error_number) const {
    if (error_number == EMSGSIZE)
        if (auto const mtu = path_mtu(socket_.get(), wish_); mtu != 0) return too_long(wish_, mtu);
    if (error_number == ECONNREFUSED)
        return {Problem::unavailable,
                fmt::format("{} refuses what is sent to its UDP port (ICMP)", to_string(wish_.to)),
                "let the port through the firewall there: nft list ruleset",
                {errno_cause("sendmmsg", error_number)}};
    return no_sender(wish_, "sendmmsg", error_number);
}

}  // namespace vfmgr::stream
