// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/echo.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "api/os/socket_address.hpp"

namespace vfmgr::verify {
namespace {

// "vfe1", kind, length of the nonce, nonce, zeros.
constexpr std::array<std::byte, 4> magic{std::byte{'v'}, std::byte{'f'}, std::byte{'e'},
                                         std::byte{'1'}};
constexpr std::size_t header_bytes = magic.size() + 2;

template <class T>
int set(int fd, int level, int option, T const& value) {
    return ::setsockopt(fd, level, option, &value, sizeof value);
}

int never_fragment(int fd, IpAddress::Family family) {
    if (family == IpAddress::Family::v4)
        return set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
    if (int const failed = set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE))
        return failed;
    return set(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
}

}  // namespace

std::size_t full_datagram_bytes(std::uint32_t mtu, IpAddress::Family family) {
    std::size_t const headers = family == IpAddress::Family::v4 ? 28 : 48;
    return mtu > headers ? mtu - headers : 0;
}

std::vector<std::byte> make_question(EchoDatagram const& question) {
    auto const nonce = std::as_bytes(std::span(question.nonce))
                           .first(std::min(question.nonce.size(), nonce_bytes_max));
    std::vector<std::byte> datagram(std::max(question.bytes, header_bytes + nonce.size()));
    std::ranges::copy(magic, datagram.begin());
    datagram[4] = static_cast<std::byte>(question.kind);
    datagram[5] = static_cast<std::byte>(nonce.size());
    std::ranges::copy(nonce, datagram.begin() + header_bytes);
    return datagram;
}

std::optional<EchoDatagram> parse_question(std::span<std::byte const> datagram) {
    if (datagram.size() < header_bytes || !std::ranges::equal(datagram.first(4), magic))
        return std::nullopt;
    auto const kind = std::to_integer<std::uint8_t>(datagram[4]);
    auto const length = std::to_integer<std::size_t>(datagram[5]);
    bool const known = kind == static_cast<std::uint8_t>(EchoKind::reachability) ||
                       kind == static_cast<std::uint8_t>(EchoKind::path_mtu);
    if (!known || length > nonce_bytes_max || datagram.size() < header_bytes + length)
        return std::nullopt;
    auto const nonce = datagram.subspan(header_bytes, length);
    EchoDatagram question{static_cast<EchoKind>(kind), {}, datagram.size()};
    for (auto const byte : nonce) question.nonce += std::to_integer<char>(byte);
    return question;
}

std::vector<std::byte> make_answer(EchoDatagram const& question, Payload const& secret) {
    auto const chunks = (question.bytes + payload_chunk_bytes - 1) / payload_chunk_bytes;
    std::vector<std::byte> answer(chunks * payload_chunk_bytes);
    // The kind is the epoch: the answer to a small question is no prefix of the answer to a big
    // one.
    fill(Payload{secret.key, static_cast<std::uint64_t>(question.kind)}, 0, answer);
    answer.resize(question.bytes);
    return answer;
}

Error socket_error(SocketPlace const& place, int type, char const* call) {
    int const error_number = errno;
    auto const* const protocol = type == SOCK_STREAM ? "TCP" : "UDP";
    auto const address = to_string(place.address);
    Error error{Problem::kernel_refused,
                fmt::format("can't open a {} socket on {} port {}{}{}", protocol, address,
                            place.port, place.ifname.empty() ? "" : " of ", place.ifname),
                "check the cause: it is the kernel's own error"};
    if (error_number == EADDRNOTAVAIL && place.ifname.empty())
        error.remedy = "name an address that a netdev here has: ip -brief address";
    else if (error_number == EADDRNOTAVAIL)
        error.remedy = fmt::format("give {} the address {}", place.ifname, address);
    else if (error_number == EADDRINUSE)
        error.remedy = fmt::format("stop the program that uses {} port {}", protocol, place.port);
    else if (error_number == EPERM)
        error.remedy = "run as root: binding to a netdev needs CAP_NET_RAW";
    else if (error_number == ENODEV)
        error.remedy = fmt::format("check that the netdev {} exists", place.ifname);
    error.causes.push_back(errno_cause(call, error_number));
    return error;
}

Result<FileDescriptor> open_socket(SocketPlace const& place, int type) {
    auto const family = place.address.family;
    FileDescriptor fd(::socket(family == IpAddress::Family::v4 ? AF_INET : AF_INET6,
                               type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return fail(socket_error(place, type, "socket"));
    if (!place.ifname.empty() &&
        ::setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, place.ifname.c_str(),
                     static_cast<socklen_t>(place.ifname.size())) != 0)
        return fail(socket_error(place, type, "setsockopt SO_BINDTODEVICE"));
    if (type == SOCK_STREAM)
        set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    else if (never_fragment(fd.get(), family) != 0)
        return fail(socket_error(place, type, "setsockopt IP_MTU_DISCOVER"));
    auto const address = SocketAddress::of(place.address, place.port);
    if (::bind(fd.get(), address.get(), address.length) != 0)
        return fail(socket_error(place, type, "bind"));
    return fd;
}

}  // namespace vfmgr::verify
