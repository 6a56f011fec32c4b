// SPDX-License-Identifier: Apache-2.0
// The UDP datagrams of the reachability and path MTU tests, and the host's answer to one: as long
// as the question, filled from a key that the guest doesn't know; and the sockets for it. Pure
// except the sockets; any thread.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/types/addresses.hpp"
#include "vfmgr/proof/random_payload.hpp"

namespace vfmgr::verify {

enum class EchoKind : std::uint8_t { reachability = 1, path_mtu = 2 };

struct EchoDatagram {
    EchoKind kind = EchoKind::reachability;
    std::string nonce;
    std::size_t bytes = 0;  // the whole datagram, without UDP and IP headers
};

inline constexpr std::size_t reachability_bytes = 256;
inline constexpr std::size_t nonce_bytes_max = 128;

// The UDP payload that fits one packet of this MTU: less 28 (IPv4) or 48 (IPv6).
[[nodiscard]] std::size_t full_datagram_bytes(std::uint32_t mtu, IpAddress::Family family);

[[nodiscard]] std::vector<std::byte> make_question(EchoDatagram const& question);
// Returns nullopt for anything but a question; nothing else is read from it.
[[nodiscard]] std::optional<EchoDatagram> parse_question(std::span<std::byte const> datagram);
// As long as the question: an answer never amplifies.
[[nodiscard]] std::vector<std::byte> make_answer(EchoDatagram const& question,
                                                 Payload const& secret);

// Where a socket is bound.
struct SocketPlace {
    IpAddress address;
    std::uint16_t port = 0;  // 0: any free one
    std::string ifname;      // only packets on this netdev; empty: on any
};
// Non-blocking and bound. SOCK_DGRAM: UDP, never fragments (IP_PMTUDISC_PROBE). SOCK_STREAM: TCP,
// also while earlier connections are in TIME_WAIT.
[[nodiscard]] Result<FileDescriptor> open_socket(SocketPlace const& place, int type = SOCK_DGRAM);
// The error of a call for such a socket, from errno.
[[nodiscard]] Error socket_error(SocketPlace const& place, int type, char const* call);

}  // namespace vfmgr::verify
