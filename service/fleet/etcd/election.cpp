// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/etcd/election.hpp"

#include <algorithm>
#include <utility>

namespace vfmgr::fleet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// What a call may take. Leadership does not hang on it: the lease has its own limits.
constexpr seconds election_call{3};
constexpr seconds goodbye{2};
constexpr Backoff election_backoff{milliseconds(100), milliseconds(2'000)};

}  // namespace

Election::Election(Etcd& etcd, Clock const& clock, LeasedKey candidate, ElectionCalls calls)
    : etcd_(etcd),
      clock_(clock),
      candidate_(std::move(candidate)),
      calls_(std::move(calls)),
      lease_(etcd, clock, candidate_.ttl),
      try_at_(clock.steady_now()),
      backoff_(election_backoff) {}

Election::~Election() {
    stop();
}

void Election::start() {
    thread_ = std::make_unique<OwnThread>([this] { return turn(); }, [this] { interrupt(); });
}

void Election::stop() {
    thread_.reset();
    end_watch();
    step_down();
    // With its lease the key goes.
    lease_.let_go(clock_.steady_now() + goodbye);
}

std::optional<Revision> Election::fence() const {
    auto const fence = fence_.load();
    // The order matters: the lease is doubted before the fence goes.
    if (fence == 0 || !lease_.trusted()) return std::nullopt;
    return fence;
}

std::optional<KeyValue> Election::leader() const {
    std::lock_guard const lock(mutex_);
    return holder_;
}

Deadline Election::turn() {
    static_cast<void>(lease_.keep());
    decide();
    auto const due = [this] { return std::max(clock_.steady_now(), lease_.due()); };
    if (clock_.steady_now() < try_at_) return std::min(try_at_, due());
    if (!watch_ && !observe()) {
        try_at_ = clock_.steady_now() + backoff_.next();
        return std::min(try_at_, due());
    }
    if (!holder_ && lease_.id() != 0 && lease_.trusted()) campaign();
    if (clock_.steady_now() < try_at_) return std::min(try_at_, due());
    follow(due());
    return clock_.steady_now();
}

// Reads who leads, and watches from there on. False: that failed.
bool Election::observe() {
    auto const until = clock_.steady_now() + election_call;
    auto const found = etcd_.range({.key = candidate_.key}, until);
    if (!found) return false;
    auto watch = etcd_.watch(
        {.key = candidate_.key, .match = Match::key, .revision = found->revision + 1}, until);
    if (!watch) return false;
    {
        std::lock_guard const lock(mutex_);
        watch_ = std::move(*watch);
        if (interrupted_) watch_->end();
    }
    backoff_.reset();
    // A list says what is so, whatever was known before: etcd may have been restored.
    observed_at_ = 0;
    observed(found->entries.empty() ? std::nullopt : std::optional(found->entries.front()),
             found->revision);
    return true;
}

// What a watch delivers late must not undo what a transaction has shown.
void Election::observed(std::optional<KeyValue> holder, Revision revision) {
    if (revision < observed_at_) return;
    observed_at_ = revision;
    {
        std::lock_guard const lock(mutex_);
        holder_ = std::move(holder);
    }
    decide();
}

void Election::campaign() {
    Transaction const creation{.compares = {absent(candidate_.key)},
                               .writes = {Put{candidate_.key, candidate_.value, lease_.id()}},
                               .otherwise = {candidate_.key}};
    auto const outcome = etcd_.commit(creation, clock_.steady_now() + election_call);
    // If the answer was lost and it was carried out, the watch shows the key with our lease.
    if (!outcome) {
        try_at_ = clock_.steady_now() + backoff_.next();
        return;
    }
    if (outcome->succeeded)
        observed(KeyValue{candidate_.key, candidate_.value, outcome->revision, outcome->revision,
                          lease_.id()},
                 outcome->revision);
    else if (!outcome->found.empty())
        observed(outcome->found.front(), outcome->revision);
}

void Election::follow(Deadline until) {
    auto const batch = watch_->next(until);
    if (!batch) {
        try_at_ = clock_.steady_now() + backoff_.next();
        return end_watch();
    }
    if (!*batch) return;
    for (auto const& change : (*batch)->changes) observed(change.now, change.revision);
}

// Leads exactly while the key is there with our lease, and the lease can be relied on.
void Election::decide() {
    bool const ours = holder_ && lease_.id() != 0 && holder_->lease == lease_.id();
    auto const leads_by = ours && lease_.trusted() ? holder_->create_revision : 0;
    if (leads_by == fence_.load()) return;
    step_down();
    if (leads_by != 0) lead(leads_by);
}

void Election::lead(Revision fence) {
    fence_ = fence;
    if (calls_.elected) calls_.elected(fence);
}

void Election::step_down() {
    if (fence_.exchange(0) != 0 && calls_.lost) calls_.lost();
}

void Election::end_watch() {
    std::lock_guard const lock(mutex_);
    watch_.reset();
}

void Election::interrupt() {
    std::lock_guard const lock(mutex_);
    interrupted_ = true;
    if (watch_) watch_->end();
}

Presence::Presence(Etcd& etcd, Clock const& clock, LeasedKey key)
    : etcd_(etcd),
      clock_(clock),
      key_(std::move(key)),
      lease_(etcd, clock, key_.ttl),
      try_at_(clock.steady_now()),
      backoff_(election_backoff) {}

Presence::~Presence() {
    stop();
}

void Presence::start() {
    thread_ = std::make_unique<OwnThread>([this] { return turn(); }, [] {});
}

void Presence::stop() {
    thread_.reset();
    lease_.let_go(clock_.steady_now() + goodbye);
}

Deadline Presence::turn() {
    auto const lease = lease_.keep();
    if (lease == 0 || lease == put_with_) return lease_.due();
    if (auto const now = clock_.steady_now(); now >= try_at_) {
        // Sent again after a lost answer: it writes the same once more.
        Transaction const there{.compares = {}, .writes = {Put{key_.key, key_.value, lease}}};
        if (etcd_.commit(there, now + election_call)) {
            put_with_ = lease;
            backoff_.reset();
            return lease_.due();
        }
        try_at_ = clock_.steady_now() + backoff_.next();
    }
    return std::min(try_at_, lease_.due());
}

}  // namespace vfmgr::fleet
