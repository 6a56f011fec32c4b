// SPDX-License-Identifier: Apache-2.0
// A lease of etcd that is kept alive, and how long it may be relied on. Internal to etcd/: for
// Election and Presence, one thread each; trusted() from any thread.
#pragma once

#include <atomic>
#include <chrono>

#include "service/fleet/etcd/etcd.hpp"
#include "service/fleet/etcd/timing.hpp"

namespace vfmgr::fleet {

class KeptLease {
  public:
    KeptLease(Etcd& etcd, Clock const& clock, std::chrono::seconds ttl);

    // Grants one, or keeps it alive, if that is due, which may take a third of its time. 0: it has
    // none now. When one can't be relied on any more it returns 0 before it makes another, so that
    // its owner gives up first what the lease stood for.
    [[nodiscard]] LeaseId keep();
    // 0: none. Changes in keep() and let_go() only.
    [[nodiscard]] LeaseId id() const { return id_; }
    // When keep() has something to do.
    [[nodiscard]] Deadline due() const;
    // Whether etcd can't have ended it yet: a third of its time is left, counted from before the
    // last request that etcd answered, by the steady clock.
    [[nodiscard]] bool trusted() const;
    [[nodiscard]] Deadline trusted_until() const { return Deadline(trusted_until_.load()); }
    // Ends it, and with it its keys. Without an answer it ends by itself.
    void let_go(Deadline deadline);
    [[nodiscard]] std::optional<Error> const& problem() const { return problem_; }

  private:
    void answered(Deadline sent, std::chrono::seconds ttl);
    void begin();
    void go_on();
    void doubt();

    Etcd& etcd_;
    Clock const& clock_;
    std::chrono::seconds const ttl_;
    LeaseId id_ = 0;
    LeaseId doubted_ = 0;  // to be ended, so that its keys are in nobody's way
    Deadline due_;
    std::atomic<Deadline::duration> trusted_until_{Deadline::duration::zero()};
    std::optional<Error> problem_;  // why it has none, or was not kept alive the last time
    Backoff backoff_;
};

}  // namespace vfmgr::fleet
