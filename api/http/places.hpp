// SPDX-License-Identifier: Apache-2.0
// Shares a listener's connections among its peers. Each peer may have a part of them. When all are
// taken, the peer with the most gives one up to a peer with fewer. Shares even out, and idle
// connections lock no peer out. Values; any thread.
#pragma once

#include <cstdint>
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

struct PlaceLimits {
    std::size_t all = 256;
    std::size_t each = 32;
};

// Finds a place for one more connection of `peer`. Returns the number of the connection to end for
// it, or nullopt while `taken` leaves room. Fails with unavailable.
[[nodiscard]] Result<std::optional<std::uint64_t>> find_place(std::span<Place const> taken,
                                                              std::string const& peer,
                                                              PlaceLimits const& limits);

// Refuses an unprivileged process of a VM with forbidden, before it takes a place from the VM's
// root.
[[nodiscard]] Result<void> check_source(SourcePort source, Peer const& peer);

}  // namespace vfmgr::http
