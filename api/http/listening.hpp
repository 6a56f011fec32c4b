// SPDX-License-Identifier: Apache-2.0
// Listening sockets of every kind, and the identity of connected peers. Plain sockets, no Asio.
// Called from the owner's thread at start; peer_of() from the io thread.
#pragma once

#include <optional>
#include <string>

#include "api/http/http.hpp"
#include "api/os/descriptor.hpp"
#include "api/os/handle.hpp"

namespace vfmgr::http {

struct ListeningSocket {
    FileDescriptor fd;  // non-blocking, close-on-exec
    Held file;          // the socket file that was created for it; removed with it
};

[[nodiscard]] Result<ListeningSocket> open_listening(Listen const& where);

// Returns AF_UNIX, AF_INET, …; AF_UNSPEC if `fd` is not a socket.
[[nodiscard]] int family_of(int fd);
enum class PeerState {
    quiet,
    sent_more,  // and may have gone since
    gone,       // closed both directions, or reset
};
// A vsock peer that shut down its output counts as gone. A reset looks the same, because the kernel
// reports a hang-up only after this side has shut down too (net/vmw_vsock/af_vsock.c, vsock_poll).
[[nodiscard]] PeerState peer_state(int fd);
// The same for a peer that only reads: one that shut down its output has gone, whatever the socket.
[[nodiscard]] PeerState reader_state(int fd);
// Returns nullopt if the connection is already gone.
[[nodiscard]] std::optional<Peer> peer_of(int fd);
// Returns "uid:0", "10.0.0.1" or "cid:3": the key that connections_per_peer_max counts by while no
// handler knows the peer.
[[nodiscard]] std::string peer_key(Peer const& peer);
// Returns the address that a stranger shares with others: an IPv6 host may have all of its /64.
[[nodiscard]] std::string stranger_key(Peer const& peer);

}  // namespace vfmgr::http
