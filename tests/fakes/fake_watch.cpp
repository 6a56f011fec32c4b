// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/fake_watch.hpp"

#include <algorithm>
#include <utility>

#include "service/fleet/etcd/answers.hpp"

namespace vfmgr::fleet {
namespace {

Error watch_ended(std::string text) {
    return error_of({"Watch", "fake:2379", Asked::read}, {14, std::move(text)});
}

bool watches(WatchFrom const& from, std::string const& key) {
    return from.match == Match::prefix ? key.starts_with(from.key) : key == from.key;
}

}  // namespace

FakeWatch::~FakeWatch() {
    std::lock_guard const lock(client_.cluster_.mutex_);
    std::erase(client_.cluster_.watches_, state_);
}

std::optional<WatchBatch> FakeWatch::deliver() {
    auto const& held = client_.cluster_.held_;
    WatchBatch batch{{}, held.revision};
    for (auto at = held.changes.lower_bound(state_->next); at != held.changes.end(); ++at)
        for (auto const& change : at->second)
            if (watches(state_->from, change.key)) {
                batch.changes.push_back(change);
                batch.revision = change.revision;
            }
    state_->next = std::max(state_->next, held.revision + 1);
    bool const life = std::exchange(state_->life, false);
    if (batch.changes.empty() && !life) return std::nullopt;
    return batch;
}

Result<std::optional<WatchBatch>> FakeWatch::next(Deadline deadline) {
    std::unique_lock lock(client_.cluster_.mutex_);
    for (bool in_time = true;; in_time = client_.cluster_.wait(lock, deadline)) {
        if (client_.dead_) throw CrashNow{client_.writes_, FaultPoint::before};
        client_.cluster_.end_leases();
        if (client_.link_ == FakeEtcd::Link::cut && !state_->ended)
            state_->ended = watch_ended("Socket closed");
        if (state_->ended) return fail(*state_->ended);
        if (client_.link_ == FakeEtcd::Link::works)
            if (auto batch = deliver()) return batch;
        if (!in_time) return std::nullopt;
    }
}

void FakeWatch::end() {
    {
        std::lock_guard const lock(client_.cluster_.mutex_);
        if (!state_->ended) state_->ended = watch_ended("cancelled by its reader");
    }
    client_.cluster_.notify();
}

void FakeCluster::compact(Revision revision, Behind behind) {
    {
        std::lock_guard const lock(mutex_);
        held_.compacted = std::min(revision, held_.revision);
        for (auto const& watch : watches_) {
            if (watch->next > held_.compacted) continue;
            if (behind == Behind::misses)
                watch->next = held_.compacted + 1;
            else if (!watch->ended)
                watch->ended = compacted("etcd has compacted what the watch was behind",
                                         {"etcd Watch at fake:2379", "", "compacted"});
        }
        for (auto& [_, versions] : held_.keys)
            while (versions.size() > 1 && versions[1].revision <= held_.compacted)
                versions.erase(versions.begin());
        std::erase_if(held_.keys, [this](auto const& key) {
            auto const& last = key.second.back();
            return !last.now && last.revision <= held_.compacted;
        });
        held_.changes.erase(held_.changes.begin(), held_.changes.upper_bound(held_.compacted));
    }
    notify();
}

void FakeCluster::end_watches() {
    {
        std::lock_guard const lock(mutex_);
        for (auto const& watch : watches_)
            if (!watch->ended) watch->ended = watch_ended("etcdserver: no leader");
    }
    notify();
}

void FakeCluster::show_life() {
    {
        std::lock_guard const lock(mutex_);
        for (auto const& watch : watches_) watch->life = true;
    }
    notify();
}

void FakeCluster::set_space(Space space) {
    std::lock_guard const lock(mutex_);
    space_ = space;
}

void FakeCluster::deliver() {
    std::lock_guard const lock(mutex_);
    for (auto const& one : std::exchange(under_way_, {})) static_cast<void>(carry_out(one));
}

void FakeCluster::restore(Contents contents) {
    {
        std::lock_guard const lock(mutex_);
        held_ = std::move(contents);
        under_way_.clear();
    }
    end_watches();
}

void FakeCluster::expire(LeaseId lease) {
    {
        std::lock_guard const lock(mutex_);
        end_lease(lease);
    }
    notify();
}

void FakeCluster::notify() {
    changed_.notify_all();
}

FakeCluster::Contents FakeCluster::contents() const {
    std::lock_guard const lock(mutex_);
    return held_;
}

Revision FakeCluster::revision() const {
    std::lock_guard const lock(mutex_);
    return held_.revision;
}

std::map<std::string, KeyValue> FakeCluster::keys() {
    std::lock_guard const lock(mutex_);
    end_leases();
    std::map<std::string, KeyValue> all;
    for (auto const& [key, versions] : held_.keys)
        if (versions.back().now) all.emplace(key, *versions.back().now);
    return all;
}

Revision FakeCluster::put(std::string const& key, std::string const& value, LeaseId lease) {
    std::lock_guard const lock(mutex_);
    static_cast<void>(carry_out({.compares = {}, .writes = {Put{key, value, lease}}}));
    return held_.revision;
}

void FakeCluster::erase(std::string const& key) {
    std::lock_guard const lock(mutex_);
    static_cast<void>(carry_out({.compares = {}, .writes = {Erase{key}}}));
}

}  // namespace vfmgr::fleet
