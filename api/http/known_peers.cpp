// SPDX-License-Identifier: Apache-2.0
#include "api/http/known_peers.hpp"

#include <algorithm>

namespace vfmgr::http {

void KnownPeers::remember(std::string const& peer) {
    last_[peer] = ++so_far_;
    if (last_.size() <= most_) return;
    auto const number = [](auto const& one) { return one.second; };
    last_.erase(std::ranges::min_element(last_, {}, number));
}

Result<void> admit_stranger(std::span<std::string const> strangers, std::string const& peer,
                            Limits const& limits) {
    auto const of_peer = std::ranges::count(strangers, peer);
    if (static_cast<std::size_t>(of_peer) >= limits.strangers_per_peer_max)
        return fail(Problem::unavailable,
                    peer + " already has all the connections that it may have unauthenticated",
                    "close other connections, then try again with a token");
    if (strangers.size() >= limits.connections_max - limits.connections_max / 4)
        return fail(Problem::unavailable, "all connections for unauthenticated peers are taken",
                    "try again with a token when some have ended");
    return {};
}

}  // namespace vfmgr::http
