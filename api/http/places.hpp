// SPDX-License-Identifier: Apache-2.0
// Who of many peers has a connection of a listener. Each may have a part of them; where all are
// taken, who has the most gives one up for who has fewer, so that everybody comes to as many as
// there are for all, and what says nothing holds nobody out. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "api/http/http.hpp"

namespace vfmgr::http {

// A connection that is there.
struct Place {
    std::string peer;          // peer_key()
    std::uint64_t number = 0;  // in order of arrival
    bool idle = false;         // it waits for its peer, and owes it nothing
};

struct PlaceLimits {
    std::size_t all = 256;
    std::size_t each = 32;
};

// For one more connection of `peer`: the number of the one that ends for it; nothing: there is room
// beside all of `taken`. unavailable.
[[nodiscard]] Result<std::optional<std::uint64_t>> find_place(std::span<Place const> taken,
                                                              std::string const& peer,
                                                              PlaceLimits const& limits);

// forbidden for an unprivileged process of a VM: it takes no place of those that its root has.
[[nodiscard]] Result<void> check_source(SourcePort source, Peer const& peer);

}  // namespace vfmgr::http
