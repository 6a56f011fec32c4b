// SPDX-License-Identifier: Apache-2.0
// Remembers which network peers have authenticated, and limits the connections of all others.
// Values; not synchronised.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "api/http/http.hpp"

namespace vfmgr::http {

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
