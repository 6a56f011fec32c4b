// SPDX-License-Identifier: Apache-2.0
// Listening sockets of every kind, and who connected. Plain sockets: no Asio here.
// Called from the owner's thread at start; peer_of() from the io thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "api/http/http.hpp"
#include "api/types/file_descriptor.hpp"

namespace vfmgr::http {

// A socket file that was made here; removed when it goes, if it is still the same one.
class SocketFile {
  public:
    SocketFile() = default;
    // Remembers which file lies at `path` now.
    explicit SocketFile(std::string path);
    SocketFile(SocketFile&& other) noexcept;
    SocketFile& operator=(SocketFile&& other) noexcept;
    ~SocketFile();

  private:
    std::string path_;
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

struct ListeningSocket {
    FileDescriptor fd;  // non-blocking, close-on-exec
    SocketFile file;
};

[[nodiscard]] Result<ListeningSocket> open_listening(Listen const& where);

// AF_UNIX, AF_INET, …; AF_UNSPEC for what is no socket.
[[nodiscard]] int family_of(int fd);
enum class PeerState {
    quiet,
    sent_more,  // and may have gone after it
    gone,       // closed both directions, or reset
};
// A vsock peer that ended its output counts as gone: a reset looks the same, as the kernel reports
// a hang-up only when this side has shut down, too (net/vmw_vsock/af_vsock.c, vsock_poll).
[[nodiscard]] PeerState peer_state(int fd);
// nullopt: the connection is already gone.
[[nodiscard]] std::optional<Peer> peer_of(int fd);
// "uid:0", "10.0.0.1", "cid:3": what connections_per_peer_max counts by.
[[nodiscard]] std::string peer_key(Peer const& peer);

}  // namespace vfmgr::http
