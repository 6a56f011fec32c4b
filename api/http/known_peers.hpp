// SPDX-License-Identifier: Apache-2.0
// Who of the network has shown who they are, and the part of a listener that the others may have.
// Values; not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "api/http/http.hpp"

namespace vfmgr::http {

// Peers on whose connections a handler has known who asked; those that were so last.
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

// One more connection of a peer that nobody knows, beside `strangers`, one entry for each
// connection of such a peer: it has a share of its own, and all of them three quarters of a
// listener. unavailable.
[[nodiscard]] Result<void> admit_stranger(std::span<std::string const> strangers,
                                          std::string const& peer, Limits const& limits);

}  // namespace vfmgr::http
