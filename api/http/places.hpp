// SPDX-License-Identifier: Apache-2.0
// Divides a listener's connections among its peers. Each peer may have only some of them. When all
// are taken, the peer with the most gives one up to a peer with fewer, so that shares even out and
// idle connections lock no peer out. Network peers that have not authenticated have limits of their
// own. Values; not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "api/http/http.hpp"

namespace vfmgr::http {

// An open connection.
struct Place {
    std::string peer;          // peer_key()
    std::uint64_t number = 0;  // in order of arrival
    bool idle = false;         // waits for its peer and owes no answer
};

// Finds a place for one more connection of `peer`. Returns the number of the connection to end for
// it, or nullopt while `taken` leaves room. Fails with unavailable.
[[nodiscard]] Result<std::optional<std::uint64_t>> find_place(std::span<Place const> taken,
                                                              std::string const& peer,
                                                              Limits const& limits);

// Refuses an unprivileged process of a VM with forbidden, before it takes a place from the VM's
// root.
[[nodiscard]] Result<void> check_source(SourcePort source, Peer const& peer);

// The peers that a handler authenticated most recently.
class KnownPeers {
  public:
    explicit KnownPeers(std::size_t most) : most_(most) {}
    void remember(std::string const& peer);
    [[nodiscard]] bool contains(std::string const& peer) const { return last_.contains(peer); }

  private:
    std::size_t most_;
    std::map<std::string, std::uint64_t> last_;
    std::uint64_t so_far_ = 0;
};

// Admits one more connection of a peer that has not authenticated. `strangers` has one entry per
// connection of such peers. Each peer gets a share, and together they get three quarters of a
// listener. Fails with unavailable.
[[nodiscard]] Result<void> admit_stranger(std::span<std::string const> strangers,
                                          std::string const& peer, Limits const& limits);

}  // namespace vfmgr::http
