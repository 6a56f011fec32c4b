// SPDX-License-Identifier: Apache-2.0
// Divides a listener's connections among its peers: by the name that a handler knows them by, and
// before that by uid or CID. Each peer may have only some of them. When all are taken, the peer
// with the most gives one up to a peer with fewer, so that shares even out and idle connections
// lock no peer out. Network peers that have not authenticated, strangers, have places of their own,
// and so take none from anybody else. Values; not synchronised.
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
    std::string peer;          // its name, or peer_key()
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

// The addresses of those whom a handler authenticated most recently.
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

// A connection of a peer that has not authenticated.
struct Stranger {
    std::string address;       // stranger_key()
    std::uint64_t number = 0;  // in order of arrival
};
enum class AddressIs { known, unknown };

// Finds a place for one more stranger from `address`. Returns the number of the connection to end
// for it, or nullopt while there is room. A newcomer always gets in, and the oldest goes: whoever
// authenticates does so soon after it has come. Fails with unavailable only if there are no places.
[[nodiscard]] Result<std::optional<std::uint64_t>> find_stranger_place(
    std::span<Stranger const> strangers, std::string const& address, AddressIs address_is,
    Limits const& limits);

}  // namespace vfmgr::http
