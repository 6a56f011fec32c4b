// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/udp_sender.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <cerrno>

#include "api/os/socket_address.hpp"
#include "guest-tools/stream/packet.hpp"
#include "guest-tools/verify/echo.hpp"

namespace vfmgr::stream {
namespace {

constexpr int room_wait_ms = 10'000;

bool is_v4(UdpSender::Options const& options) {
    return options.to.family == IpAddress::Family::v4;
}

Error no_sender(UdpSender::Options const& options, char const* call, int error_number) {
    return {Problem::kernel_refused,
            fmt::format("can't open a UDP socket from {} to {}", to_string(options.local),
                        to_string(options.to)),
            fmt::format("check the route: ip route get {}", to_string(options.to)),
            {errno_cause(call, error_number)}};
}

// DO rather than PROBE: respects the MTU that the path has reported, and fails here.
int forbid_fragments(int fd, UdpSender::Options const& options) {
    if (is_v4(options)) {
        int const discover = IP_PMTUDISC_DO;
        return ::setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &discover, sizeof discover);
    }
    int const discover = IPV6_PMTUDISC_DO;
    return ::setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &discover, sizeof discover);
}

// Returns the MTU for a connected socket; 0 when the kernel does not report it.
std::uint32_t path_mtu(int fd, UdpSender::Options const& options) {
    int mtu = 0;
    socklen_t length = sizeof mtu;
    int const failed = is_v4(options) ? ::getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &length)
                                      : ::getsockopt(fd, IPPROTO_IPV6, IPV6_MTU, &mtu, &length);
    return failed != 0 || mtu < 0 ? 0 : static_cast<std::uint32_t>(mtu);
}

Error too_long(UdpSender::Options const& options, std::uint32_t mtu) {
    auto const most = verify::full_datagram_bytes(mtu, options.to.family);
    return {Problem::unsupported,
            fmt::format("packets of {} bytes do not fit the path to {}: its MTU of {} leaves {} "
                        "bytes, and packets are not fragmented",
                        options.packet_bytes, to_string(options.to), mtu, most),
            fmt::format("send --packet-bytes {}, or raise the MTU on the whole path", most)};
}

}  // namespace

Result<UdpSender> UdpSender::open(Options const& options) {
    FileDescriptor fd(::socket(is_v4(options) ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd) return fail(no_sender(options, "socket", errno));
    auto const local = SocketAddress::of(options.local, 0);
    if (::bind(fd.get(), local.get(), local.length) != 0)
        return fail(no_sender(options, "bind", errno));
    if (forbid_fragments(fd.get(), options) != 0)
        return fail(no_sender(options, "setsockopt IP_MTU_DISCOVER", errno));
    UdpSender made(std::move(fd), options);
    // Any port will do: the MTU is the path's.
    VFMGR_CHECK(made.aim(default_port));
    auto const mtu = path_mtu(made.socket_.get(), options);
    if (mtu != 0 && options.packet_bytes > verify::full_datagram_bytes(mtu, options.to.family))
        return fail(too_long(options, mtu));
    return made;
}

UdpSender::UdpSender(FileDescriptor socket, Options const& options)
    : socket_(std::move(socket)),
      options_(options),
      memory_(std::size_t{options.packet_bytes} * options.chunk),
      sges_(options.chunk),
      messages_(options.chunk) {
    for (std::uint64_t i = 0; i < options.chunk; ++i) {
        prepare_packet(packet(i), options.run);
        sges_[i] = {packet(i).data(), packet(i).size()};
    }
}

std::span<std::byte> UdpSender::packet(std::uint64_t index) {
    return std::span(memory_).subspan(index * options_.packet_bytes, options_.packet_bytes);
}

Result<void> UdpSender::aim(std::uint16_t port) {
    auto const to = SocketAddress::of(options_.to, port);
    if (::connect(socket_.get(), to.get(), to.length) != 0)
        return fail(no_sender(options_, "connect", errno));
    return {};
}

Result<void> UdpSender::send(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
        number_packet(packet(i), options_.run, first + i);
        messages_[i] = {};
        messages_[i].msg_hdr.msg_iov = &sges_[i];
        messages_[i].msg_hdr.msg_iovlen = 1;
    }
    for (std::uint64_t done = 0; done < count;) {
        int const put = ::sendmmsg(socket_.get(), &messages_[done],
                                   static_cast<unsigned>(count - done), MSG_DONTWAIT);
        if (put > 0) done += static_cast<std::uint64_t>(put);
        if (put > 0 || errno == EINTR) continue;
        if (errno == EPERM) {  // nftables dropped this packet: lost, but not by the network
            ++filtered_;
            ++done;
            continue;
        }
        if (errno != EAGAIN) return fail(refused(errno));
        VFMGR_CHECK(await_room());
    }
    return {};
}

// Waits, since a link may be paused or a queue full.
Result<void> UdpSender::await_room() const {
    pollfd writable{socket_.get(), POLLOUT, 0};
    if (::poll(&writable, 1, room_wait_ms) != 0) return {};
    return fail(Problem::timed_out,
                fmt::format("nothing could be sent to {} for {} s", to_string(options_.to),
                            room_wait_ms / 1000),
                "check whether the link is down or paused: ip link; ethtool -S NETDEV");
}

Error UdpSender::refused(int error_number) const {
    if (error_number == EMSGSIZE)
        if (auto const mtu = path_mtu(socket_.get(), options_); mtu != 0)
            return too_long(options_, mtu);
    if (error_number == ECONNREFUSED)
        return {Problem::unavailable,
                fmt::format("{} refuses packets to its UDP port (ICMP)", to_string(options_.to)),
                "let the port through that machine's firewall: nft list ruleset",
                {errno_cause("sendmmsg", error_number)}};
    return no_sender(options_, "sendmmsg", error_number);
}

}  // namespace vfmgr::stream
