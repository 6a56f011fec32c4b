// SPDX-License-Identifier: Apache-2.0
// Follows etcd, and publishes what is there. Any thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "service/fleet/etcd/follower.hpp"
#include "service/fleet/state.hpp"

namespace vfmgr::fleet {

class Registry {
  public:
    // Called with each state that has news, on the follower's thread, one call after the other.
    using Changed = std::function<void(std::shared_ptr<State const> const&)>;

    // `etcd` and `clock` outlive it.
    Registry(Etcd& etcd, Clock const& clock, Changed changed);
    Registry(Registry const&) = delete;
    Registry& operator=(Registry const&) = delete;

    void start() { follower_.start(); }
    void stop() { follower_.stop(); }
    // What is known now; its `stale_since` says whether etcd still confirms it.
    [[nodiscard]] std::shared_ptr<State const> state() const;
    // Waits until everything up to that revision is known, so that a client that has written reads
    // what it wrote. False: it did not come in time.
    [[nodiscard]] bool wait_for(Revision revision, Deadline deadline) const;
    // Why etcd is not followed now; absent: it is.
    [[nodiscard]] std::optional<Error> problem() const { return follower_.problem(); }

  private:
    void publish(State next);
    void take(std::vector<KeyChange> const& changes, Revision revision);

    Clock const& clock_;
    Changed const changed_;
    mutable std::mutex mutex_;  // guards state_
    mutable std::condition_variable news_;
    std::shared_ptr<State const> state_ = std::make_shared<State>();
    Follower follower_;  // the last member: its thread uses the others
};

}  // namespace vfmgr::fleet
