// SPDX-License-Identifier: Apache-2.0
// Follows all keys below a prefix: lists them, watches from there, and lists and compares again
// whenever the watch has ended, and now and then anyway, because etcd 3.4.23 and 3.5.16 lose events
// around a compaction (etcd-io/etcd#18089, #19179). Owned by run(); one thread of its own.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "service/fleet/etcd/etcd.hpp"
#include "service/fleet/etcd/timing.hpp"

namespace vfmgr::fleet {

// Called on the follower's thread, one after the other.
struct FollowerCalls {
    // All keys, once, at first.
    std::function<void(std::vector<KeyValue> const& all, Revision revision)> reset;
    // What differs from what was reported before, in the order of revisions where a watch showed
    // it. Never empty.
    std::function<void(std::vector<KeyChange> const& changes, Revision revision)> changed;
    // Absent: what was reported is current. Called when that changes; it begins as stale.
    std::function<void(std::optional<Time> stale_since)> stale;
};

struct FollowerSettings {
    std::string prefix;
    std::chrono::milliseconds list_again{std::chrono::minutes(5)};
    std::size_t page = 1'000;  // keys in one answer of etcd
};

class Follower {
  public:
    Follower(Etcd& etcd, Clock const& clock, FollowerSettings settings, FollowerCalls calls);
    ~Follower();  // stop()
    Follower(Follower const&) = delete;
    Follower& operator=(Follower const&) = delete;

    void start();
    void stop();

    // When etcd last showed that it is there: by a list, by a change, by a sign of life. Absent:
    // never. Any thread.
    [[nodiscard]] std::optional<Time> as_of() const;
    // Since when changes may be missed: since the watch ended, or since the beginning. Absent:
    // they are followed. Any thread.
    [[nodiscard]] std::optional<Time> stale_since() const;
    // Why it is stale; absent: it is not, or has just begun. Any thread.
    [[nodiscard]] std::optional<Error> problem() const;

    // What the thread does; returns when it is to be called next. Tests call it without start().
    [[nodiscard]] Deadline turn();

  private:
    using Keys = std::map<std::string, KeyValue>;

    [[nodiscard]] Result<Revision> list();
    [[nodiscard]] Result<Revision> read_all(Keys& all);
    void compare(Keys listed, Revision revision);
    [[nodiscard]] Result<void> watch_from(Revision revision);
    void take(WatchBatch const& batch);
    [[nodiscard]] Deadline failed(Error error);
    void alive();
    void set_stale(std::optional<Time> since);
    void interrupt();

    Etcd& etcd_;
    Clock const& clock_;
    FollowerSettings const settings_;
    FollowerCalls const calls_;
    std::optional<Keys> keys_;  // as reported; absent: nothing yet
    Revision listed_at_ = 0;    // what a watch delivers up to it is known
    Deadline list_at_;
    Backoff backoff_;
    mutable std::mutex mutex_;      // guards the members below
    std::unique_ptr<Watch> watch_;  // written by turn() only
    bool interrupted_ = false;
    std::optional<Time> as_of_;
    std::optional<Time> stale_since_;
    std::optional<Error> problem_;
    std::unique_ptr<OwnThread> thread_;
};

}  // namespace vfmgr::fleet
