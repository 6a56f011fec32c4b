// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/fake_etcd.hpp"

#include <algorithm>
#include <utility>

#include "service/fleet/etcd/answers.hpp"
#include "tests/fakes/fake_watch.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::chrono::seconds shortest_lease{2};  // of etcd with its default election timeout

EtcdCall fake_call(std::string name, Asked asked) {
    return {std::move(name), "fake:2379", asked};
}
// In etcd's own words, so that they are understood as etcd's are.
tl::unexpected<Error> answer(std::string name, Asked asked, int code, std::string text) {
    return fail(error_of(fake_call(std::move(name), asked), {code, std::move(text)}));
}

bool takes_space(Transaction const& transaction) {
    return std::ranges::any_of(transaction.writes,
                               [](Write const& one) { return std::holds_alternative<Put>(one); });
}

}  // namespace

FakeCluster::FakeCluster(FakeClock& clock) : jumps_(&clock), clock_(clock) {}
FakeCluster::FakeCluster(Clock const& clock) : jumps_(nullptr), clock_(clock) {}

bool FakeCluster::wait(std::unique_lock<std::mutex>& lock, Deadline deadline) {
    if (jumps_) deadline = std::min(deadline, clock_.steady_now() + longest_wait);
    auto next = deadline;
    for (auto const& [_, lease] : leases_) next = std::min(next, lease.ends);
    if (jumps_) {
        auto const by = next - clock_.steady_now();
        if (by > Deadline::duration::zero())
            jumps_->advance(std::chrono::ceil<std::chrono::milliseconds>(by));
    } else {
        // A FakeClock notifies nobody when it is moved.
        changed_.wait_for(lock, std::chrono::milliseconds(5));
    }
    end_leases();
    return clock_.steady_now() < deadline;
}

std::optional<KeyValue> FakeCluster::at(std::string const& key, Revision revision) const {
    auto const found = held_.keys.find(key);
    if (found == held_.keys.end()) return std::nullopt;
    std::optional<KeyValue> now;
    for (auto const& version : found->second)
        if (version.revision <= revision) now = version.now;
    return now;
}

bool FakeCluster::holds(Compare const& compare) const {
    auto const entry = at(compare.key, held_.revision);
    bool equal = false;
    switch (compare.on) {
        case Compare::On::create_revision:
            equal = (entry ? entry->create_revision : 0) == compare.number;
            break;
        case Compare::On::mod_revision:
            equal = (entry ? entry->mod_revision : 0) == compare.number;
            break;
        case Compare::On::lease:
            equal = (entry ? entry->lease : 0) == compare.number;
            break;
        case Compare::On::value:
            if (!entry) return false;
            equal = entry->value == compare.value;
            break;
    }
    return equal == (compare.is == Compare::Is::equal);
}

void FakeCluster::write(std::vector<KeyChange>& changes, Write const& write) {
    auto const revision = held_.revision + 1;
    if (auto const* const put = std::get_if<Put>(&write)) {
        auto const before = at(put->key, held_.revision);
        KeyValue now{put->key, put->value, before ? before->create_revision : revision, revision,
                     put->lease};
        changes.push_back({put->key, std::move(now), revision});
        return;
    }
    auto const& erase = std::get<Erase>(write);
    for (auto const& [key, versions] : held_.keys)
        if (versions.back().now &&
            (erase.match == Match::prefix ? key.starts_with(erase.key) : key == erase.key))
            changes.push_back({key, std::nullopt, revision});
}

void FakeCluster::record(std::vector<KeyChange> const& changes) {
    if (changes.empty()) return;  // an erasure of nothing makes no revision
    ++held_.revision;
    for (auto const& change : changes)
        held_.keys[change.key].push_back({change.revision, change.now});
    held_.changes[held_.revision] = changes;
    changed_.notify_all();
}

Result<Outcome> FakeCluster::carry_out(Transaction const& transaction) {
    if (!std::ranges::all_of(transaction.compares,
                             [this](auto const& one) { return holds(one); })) {
        Outcome outcome{false, held_.revision, {}};
        for (auto const& key : transaction.otherwise)
            if (auto entry = at(key, held_.revision)) outcome.found.push_back(std::move(*entry));
        return outcome;
    }
    for (auto const& one : transaction.writes)
        if (auto const* const put = std::get_if<Put>(&one))
            if (put->lease != 0 && !leases_.contains(put->lease))
                return answer("Txn", Asked::write, 5, "etcdserver: requested lease not found");
    std::vector<KeyChange> changes;
    for (auto const& one : transaction.writes) write(changes, one);
    record(changes);
    return Outcome{true, held_.revision, {}};
}

void FakeCluster::end_lease(LeaseId lease) {
    std::vector<KeyChange> changes;
    for (auto const& [key, versions] : held_.keys)
        if (versions.back().now && versions.back().now->lease == lease)
            changes.push_back({key, std::nullopt, held_.revision + 1});
    leases_.erase(lease);
    record(changes);
}

void FakeCluster::end_leases() {
    std::vector<LeaseId> ended;
    for (auto const& [id, lease] : leases_)
        if (lease.ends <= clock_.steady_now()) ended.push_back(id);
    for (auto const id : ended) end_lease(id);
}

Result<void> FakeEtcd::reach(std::unique_lock<std::mutex>& lock, std::string const& call,
                             Deadline deadline) {
    if (dead_) throw CrashNow{writes_, FaultPoint::before};
    cluster_.end_leases();
    if (link_ == Link::cut)
        return fail(Problem::unavailable, "etcd at fake:2379 can't be connected to", "connect it");
    while (link_ == Link::frozen)
        if (!cluster_.wait(lock, deadline))
            return answer(call, call == "Txn" ? Asked::write : Asked::read, 4, "Deadline Exceeded");
    return {};
}

Result<Found> FakeEtcd::range(Query const& query, Deadline deadline) {
    if (on_range) on_range(query);
    std::unique_lock lock(cluster_.mutex_);
    if (query.match == Match::prefix) ++lists_;
    VFMGR_CHECK(reach(lock, "Range", deadline));
    auto const& held = cluster_.held_;
    auto const revision = query.revision == 0 ? held.revision : query.revision;
    if (revision < held.compacted)
        return answer("Range", Asked::read, 11,
                      "etcdserver: mvcc: required revision has been compacted");
    if (revision > held.revision)
        return answer("Range", Asked::read, 11,
                      "etcdserver: mvcc: required revision is a future revision");
    Found found{{}, held.revision, false};
    for (auto const& [key, _] : held.keys) {
        bool const asked = query.match == Match::key
                               ? key == query.key
                               : key.starts_with(query.key) && key >= query.from;
        auto entry = asked ? cluster_.at(key, revision) : std::nullopt;
        if (!entry) continue;
        found.more = query.limit != 0 && found.entries.size() == query.limit;
        if (found.more) break;
        if (query.content == Content::no_value) entry->value.clear();
        found.entries.push_back(std::move(*entry));
    }
    return found;
}

CommitFault FakeEtcd::next_fault() {
    if (faults_.empty()) return CommitFault::none;
    auto const fault = faults_.front();
    faults_.pop_front();
    return fault;
}

void FakeEtcd::crash(Transaction const& transaction, FaultPoint point) {
    if (transaction.writes.empty() || !die_at_ || die_at_->point != point ||
        die_at_->call != writes_)
        return;
    dead_ = true;
    throw CrashNow{writes_, point};
}

Result<Outcome> FakeEtcd::commit(Transaction const& transaction, Deadline deadline) {
    VFMGR_CHECK(check(transaction));
    if (on_commit) on_commit(transaction);
    std::unique_lock lock(cluster_.mutex_);
    ++commits_;
    VFMGR_CHECK(reach(lock, "Txn", deadline));
    crash(transaction, FaultPoint::before);
    auto const fault = next_fault();
    if (fault == CommitFault::refused)
        return answer("Txn", Asked::write, 14, "etcdserver: no leader");
    if (fault == CommitFault::under_way) cluster_.under_way_.push_back(transaction);
    bool const lost = fault != CommitFault::none;
    if (lost && fault != CommitFault::lost_after)
        return answer("Txn", Asked::write, 4, "Deadline Exceeded");
    auto const full = [] {
        return answer("Txn", Asked::write, 8, "etcdserver: mvcc: database space exceeded");
    };
    if (takes_space(transaction) && cluster_.space_ == FakeCluster::Space::none) return full();
    auto outcome = cluster_.carry_out(transaction);
    if (!transaction.writes.empty()) {
        crash(transaction, FaultPoint::after);
        ++writes_;
    }
    if (takes_space(transaction) && cluster_.space_ == FakeCluster::Space::last) {
        cluster_.space_ = FakeCluster::Space::none;
        return full();
    }
    if (lost) return answer("Txn", Asked::write, 4, "Deadline Exceeded");
    return outcome;
}

Result<std::unique_ptr<Watch>> FakeEtcd::watch(WatchFrom const& from, Deadline deadline) {
    std::unique_lock lock(cluster_.mutex_);
    VFMGR_CHECK(reach(lock, "Watch", deadline));
    auto state = std::make_shared<FakeWatchState>(FakeWatchState{from, from.revision, {}, false});
    if (from.revision <= cluster_.held_.compacted)
        state->ended = compacted("etcd has compacted what the watch was to begin with",
                                 {"etcd Watch at fake:2379", "", "compacted"});
    cluster_.watches_.push_back(state);
    return std::make_unique<FakeWatch>(*this, std::move(state));
}

Result<LeaseGrant> FakeEtcd::grant(std::chrono::seconds ttl, Deadline deadline) {
    std::unique_lock lock(cluster_.mutex_);
    VFMGR_CHECK(reach(lock, "LeaseGrant", deadline));
    if (cluster_.space_ == FakeCluster::Space::none)
        return answer("LeaseGrant", Asked::write, 8, "etcdserver: mvcc: database space exceeded");
    auto const granted = std::max(ttl, shortest_lease);
    auto const id = ++cluster_.last_lease_;
    cluster_.leases_[id] = {granted, cluster_.clock_.steady_now() + granted};
    return LeaseGrant{id, granted};
}

Result<std::chrono::seconds> FakeEtcd::keep_alive(LeaseId lease, Deadline deadline) {
    std::unique_lock lock(cluster_.mutex_);
    VFMGR_CHECK(reach(lock, "LeaseKeepAlive", deadline));
    auto const found = cluster_.leases_.find(lease);
    if (found == cluster_.leases_.end())
        return fail(Problem::not_found, "etcd has ended the lease");
    found->second.ends = cluster_.clock_.steady_now() + found->second.ttl;
    return found->second.ttl;
}

Result<void> FakeEtcd::revoke(LeaseId lease, Deadline deadline) {
    std::unique_lock lock(cluster_.mutex_);
    VFMGR_CHECK(reach(lock, "LeaseRevoke", deadline));
    if (cluster_.leases_.contains(lease)) cluster_.end_lease(lease);
    return {};
}

std::vector<MemberStatus> FakeEtcd::members(Deadline deadline) {
    std::unique_lock lock(cluster_.mutex_);
    MemberStatus one{.id = 1, .name = "fake", .url = "fake:2379"};
    if (auto const reached = reach(lock, "Status", deadline); !reached) {
        one.problem = reached.error();
    } else {
        one.version = "3.4.23";
        one.leader = 1;
        if (cluster_.space_ == FakeCluster::Space::none) one.alarms = {"NOSPACE"};
    }
    return {one};
}

void FakeEtcd::fail_commits(std::deque<CommitFault> faults) {
    std::lock_guard const lock(cluster_.mutex_);
    faults_ = std::move(faults);
}

void FakeEtcd::set_link(Link link) {
    {
        std::lock_guard const lock(cluster_.mutex_);
        link_ = link;
    }
    cluster_.notify();
}

void FakeEtcd::die_at(Fault fault) {
    std::lock_guard const lock(cluster_.mutex_);
    die_at_ = fault;
}

std::size_t FakeEtcd::commits() const {
    std::lock_guard const lock(cluster_.mutex_);
    return commits_;
}

std::size_t FakeEtcd::lists() const {
    std::lock_guard const lock(cluster_.mutex_);
    return lists_;
}

}  // namespace vfmgr::fleet
