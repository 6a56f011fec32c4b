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
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "api/http/http.hpp"

namespace vfmgr::http {

// An open connection.
struct Place {
    std::string_view peer;     // its name, or peer_key()
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

enum class AddressIs { unknown, known };

// The connections of peers that have not authenticated. Those of known addresses have half as many
// places as connections_max, and all others another half: who floods from elsewhere takes none from
// a host whose clients do authenticate.
class Strangers {
  public:
    // Finds a place for one more stranger from `address`, its stranger_key(). Returns the number of
    // the connection to end for it, or nullopt while there is room. A newcomer always gets in, and
    // the oldest goes: whoever authenticates does so soon after it has come. Fails with unavailable
    // only if there are no places.
    [[nodiscard]] Result<std::optional<std::uint64_t>> find_place(std::string const& address,
                                                                  AddressIs is,
                                                                  Limits const& limits) const;
    // Numbers are in order of arrival.
    void add(std::string const& address, AddressIs is, std::uint64_t number);
    void remove(std::uint64_t number);
    [[nodiscard]] bool contains(std::uint64_t number) const { return all_.contains(number); }

  private:
    using Numbers = std::set<std::uint64_t>;
    struct Half {
        std::map<std::string, Numbers> of;  // an address
        std::size_t size = 0;
    };
    struct Stranger {
        AddressIs is;
        std::string address;
    };
    std::map<AddressIs, Half> halves_{{AddressIs::unknown, {}}, {AddressIs::known, {}}};
    std::map<std::uint64_t, Stranger> all_;
};

}  // namespace vfmgr::http
