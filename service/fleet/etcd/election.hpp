// SPDX-License-Identifier: Apache-2.0
// Who of the replicas leads: whoever created the election's key, until its lease ends. And the key
// by which a replica is known to be there. Owned by run(), which outlives its callers; one thread
// of its own each.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "service/fleet/etcd/lease.hpp"

namespace vfmgr::fleet {

struct LeasedKey {
    std::string key;
    std::string value;
    std::chrono::seconds ttl{10};
};

// Called on the election's thread, which keeps the lease alive: they return at once.
struct ElectionCalls {
    // The fence: the create_revision of the key. It only grows from leader to leader.
    std::function<void(Revision fence)> elected;
    // Before etcd can have given the key to another, if this thread ran in time. A process that was
    // paused may still act for a moment: fence() and the fence in each transaction stop it.
    std::function<void()> lost;
};

class Election {
  public:
    Election(Etcd& etcd, Clock const& clock, LeasedKey candidate, ElectionCalls calls);
    ~Election();  // stop()
    Election(Election const&) = delete;
    Election& operator=(Election const&) = delete;

    void start();
    // Resigns: lost() is called, then the key goes, so that another leads at once.
    void stop();

    // Absent: it does not lead, or can't be sure any more. Read the clock when it is called. Any
    // thread.
    [[nodiscard]] std::optional<Revision> fence() const;
    // The key as it was last observed; absent: nobody leads. Any thread.
    [[nodiscard]] std::optional<KeyValue> leader() const;

    // What the thread does; returns when it is to be called next. Tests call it without start().
    [[nodiscard]] Deadline turn();

  private:
    [[nodiscard]] bool observe();
    void observed(std::optional<KeyValue> holder, Revision revision);
    void campaign();
    void follow(Deadline until);
    void decide();
    void lead(Revision fence);
    void step_down();
    void end_watch();
    void interrupt();

    Etcd& etcd_;
    Clock const& clock_;
    LeasedKey const candidate_;
    ElectionCalls const calls_;
    KeptLease lease_;
    std::atomic<Revision> fence_{0};  // 0: does not lead
    Revision observed_at_ = 0;        // the revision as of which holder_ is known
    Deadline try_at_;                 // after a failure
    Backoff backoff_;
    mutable std::mutex mutex_;        // guards the members below
    std::optional<KeyValue> holder_;  // written by turn() only
    std::unique_ptr<Watch> watch_;    // written by turn() only
    bool interrupted_ = false;
    std::unique_ptr<OwnThread> thread_;
};

// Keeps a key that is there as long as this replica is. Two replicas of one name write over each
// other.
class Presence {
  public:
    Presence(Etcd& etcd, Clock const& clock, LeasedKey key);
    ~Presence();  // stop()
    Presence(Presence const&) = delete;
    Presence& operator=(Presence const&) = delete;

    void start();
    void stop();  // the key goes
    [[nodiscard]] Deadline turn();

  private:
    Etcd& etcd_;
    Clock const& clock_;
    LeasedKey const key_;
    KeptLease lease_;
    LeaseId put_with_ = 0;  // the lease that the key has
    Deadline try_at_;
    Backoff backoff_;
    std::unique_ptr<OwnThread> thread_;
};

}  // namespace vfmgr::fleet
