// SPDX-License-Identifier: Apache-2.0
// An etcd in memory that behaves like one of three members: revisions, history, watches, leases,
// compaction, lost answers. What it claims is checked against etcd itself by tests/fleet. Any
// thread.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "service/fleet/etcd/etcd.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/fault.hpp"

namespace vfmgr::fleet {

struct FakeWatchState;

// What all members hold. One for all clients of a test, which it outlives.
class FakeCluster {
  public:
    // A value: copied, it is a backup.
    struct Contents {
        struct Version {
            Revision revision = 0;
            std::optional<KeyValue> now;  // absent: erased
        };
        Revision revision = 1;  // as an empty etcd has
        Revision compacted = 0;
        std::map<std::string, std::vector<Version>> keys;  // in the order of revisions
        std::map<Revision, std::vector<KeyChange>> changes;
    };

    // What waits lets time pass: the clock jumps to whatever comes next. For one thread.
    explicit FakeCluster(FakeClock& clock);
    // What waits really does. For many threads, with any clock.
    explicit FakeCluster(Clock const& clock);

    // Forgets all before this revision. A watch that is behind it ends, or silently misses what it
    // has not delivered, as with etcd 3.4.23.
    enum class Behind { ends, misses };
    void compact(Revision revision, Behind behind);
    // Ends all watches, as when a member stops or there is no leader any more.
    void end_watches();
    // Watches get a batch without changes.
    void show_life();
    // last: the next write is carried out and answered with "no space". none: what takes space is
    // refused, until there is enough again.
    enum class Space { enough, last, none };
    void set_space(Space space);
    // Carries out what clients sent with CommitFault::under_way.
    void deliver();
    // Ends watches, too, as etcd's restart does.
    void restore(Contents contents);
    void expire(LeaseId lease);
    // Wakes those who wait, after a FakeClock was moved.
    void notify();

    // Where the clock jumps: nothing waits longer at once, so that several who share the thread get
    // their turns. A watch then shows nothing, and an unanswered call fails, before its deadline.
    std::chrono::milliseconds longest_wait{std::chrono::hours(24)};

    [[nodiscard]] Contents contents() const;
    [[nodiscard]] Revision revision() const;
    // As they are now, leases that have ended removed.
    [[nodiscard]] std::map<std::string, KeyValue> keys();
    // Another client's write, without a fault.
    Revision put(std::string const& key, std::string const& value, LeaseId lease = 0);
    void erase(std::string const& key);

  private:
    friend class FakeEtcd;
    friend class FakeWatch;
    struct Lease {
        std::chrono::seconds ttl{};
        Deadline ends;
    };

    void end_leases();
    void end_lease(LeaseId lease);
    [[nodiscard]] std::optional<KeyValue> at(std::string const& key, Revision revision) const;
    [[nodiscard]] bool holds(Compare const& compare) const;
    [[nodiscard]] Result<Outcome> carry_out(Transaction const& transaction);
    void write(std::vector<KeyChange>& changes, Write const& write);
    void record(std::vector<KeyChange> const& changes);
    // Returns when something may have happened, or at the deadline: false.
    bool wait(std::unique_lock<std::mutex>& lock, Deadline deadline);

    FakeClock* const jumps_;  // null: it waits
    Clock const& clock_;
    mutable std::mutex mutex_;  // guards all below
    std::condition_variable changed_;
    Contents held_;
    std::map<LeaseId, Lease> leases_;
    LeaseId last_lease_ = 0x7000;
    Space space_ = Space::enough;
    std::vector<Transaction> under_way_;
    std::vector<std::shared_ptr<FakeWatchState>> watches_;
};

// How a commit goes wrong. refused: it was surely not carried out. The others lose the answer: of a
// transaction that was never carried out, that was, or that will be with FakeCluster::deliver().
enum class CommitFault { none, refused, lost_before, lost_after, under_way };

// One client's connection.
class FakeEtcd final : public Etcd {
  public:
    explicit FakeEtcd(FakeCluster& cluster) : cluster_(cluster) {}

    [[nodiscard]] Result<Found> range(Query const& query, Deadline deadline) override;
    [[nodiscard]] Result<Outcome> commit(Transaction const& transaction,
                                         Deadline deadline) override;
    [[nodiscard]] Result<std::unique_ptr<Watch>> watch(WatchFrom const& from,
                                                       Deadline deadline) override;
    [[nodiscard]] Result<LeaseGrant> grant(std::chrono::seconds ttl, Deadline deadline) override;
    [[nodiscard]] Result<std::chrono::seconds> keep_alive(LeaseId lease,
                                                          Deadline deadline) override;
    [[nodiscard]] Result<void> revoke(LeaseId lease, Deadline deadline) override;
    [[nodiscard]] std::vector<MemberStatus> members(Deadline deadline) override;

    // Of the next commits, in order; then none.
    void fail_commits(std::deque<CommitFault> faults);
    // works, refuses all calls at once and ends watches, or leaves them unanswered until their
    // deadline.
    enum class Link { works, cut, frozen };
    void set_link(Link link);
    // CrashNow is thrown at the n-th commit that writes, counted from 0, and by every call after
    // it. `before`: it was not carried out; `after`: it was.
    void die_at(Fault fault);
    // Called before each commit, without a lock: what others do in between. Set before threads
    // start.
    std::function<void(Transaction const&)> on_commit;
    std::function<void(Query const&)> on_range;  // the same
    [[nodiscard]] std::size_t commits() const;   // that were sent
    [[nodiscard]] std::size_t lists() const;     // ranges of a prefix

  private:
    friend class FakeWatch;
    [[nodiscard]] Result<void> reach(std::unique_lock<std::mutex>& lock, std::string const& call,
                                     Deadline deadline);
    [[nodiscard]] CommitFault next_fault();
    void crash(Transaction const& transaction, FaultPoint point);

    FakeCluster& cluster_;
    // Guarded by the cluster's mutex:
    std::deque<CommitFault> faults_;
    Link link_ = Link::works;
    std::optional<Fault> die_at_;
    bool dead_ = false;
    std::size_t writes_ = 0;
    std::size_t commits_ = 0;
    std::size_t lists_ = 0;
};

}  // namespace vfmgr::fleet
