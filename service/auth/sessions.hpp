// SPDX-License-Identifier: Apache-2.0
// The sessions of people who are signed in. Kept in memory alone: a restart ends them, and people
// sign in again. Owned by run(); any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "service/auth/authenticate.hpp"

namespace vfmgr {

inline constexpr std::chrono::hours session_lifetime{8};
inline constexpr std::size_t sessions_max = 1024;
inline constexpr std::size_t sessions_each_max = 32;  // of a principal

// Returns what a session of this caller would be, which ends no later than the token or the
// certificate that begins it. Fails with forbidden for a caller that has neither, and for a
// session: one after another would never end.
[[nodiscard]] Result<Session> session_of(Principal const& who, http::Peer const& peer,
                                         std::map<std::string, Token> const& tokens, Time now);

class Sessions {
  public:
    // Called for each change that ends a session. Set it before the first.
    void on_end(std::function<void()> ended) { ended_ = std::move(ended); }
    [[nodiscard]] std::shared_ptr<OpenSessions const> get() const;
    // Returns the secret. Forgets the sessions that are over. A principal that has
    // sessions_each_max loses the oldest; with sessions_max in all it fails with unavailable.
    [[nodiscard]] Result<std::string> begin(Session session,
                                            std::map<std::string, Token> const& tokens, Time now);
    void end(std::string const& sha256);

  private:
    std::function<void()> ended_;
    mutable std::mutex mutex_;  // guards the members below
    std::shared_ptr<OpenSessions const> open_ = std::make_shared<OpenSessions const>();
    std::uint64_t begun_ = 0;
};

}  // namespace vfmgr
