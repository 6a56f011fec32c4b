// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/etcd/follower.hpp"

#include <utility>

namespace vfmgr::fleet {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds page_call{5};
constexpr std::chrono::seconds watch_call{5};
constexpr Backoff follower_backoff{milliseconds(200), milliseconds(10'000)};

}  // namespace

Follower::Follower(Etcd& etcd, Clock const& clock, FollowerSettings settings, FollowerCalls calls)
    : etcd_(etcd),
      clock_(clock),
      settings_(std::move(settings)),
      calls_(std::move(calls)),
      list_at_(clock.steady_now()),
      backoff_(follower_backoff),
      stale_since_(clock.now()) {}

Follower::~Follower() {
    stop();
}

void Follower::start() {
    thread_ = std::make_unique<OwnThread>([this] { return turn(); }, [this] { interrupt(); });
}

void Follower::stop() {
    thread_.reset();
}

std::optional<Time> Follower::as_of() const {
    std::lock_guard const lock(mutex_);
    return as_of_;
}

std::optional<Time> Follower::stale_since() const {
    std::lock_guard const lock(mutex_);
    return stale_since_;
}

std::optional<Error> Follower::problem() const {
    std::lock_guard const lock(mutex_);
    return problem_;
}

Deadline Follower::turn() {
    if (!watch_ || clock_.steady_now() >= list_at_) {
        auto const revision = list();
        if (!revision) return failed(revision.error());
        if (!watch_)
            if (auto const begun = watch_from(*revision + 1); !begun) return failed(begun.error());
        backoff_.reset();
        set_stale(std::nullopt);
    }
    auto const batch = watch_->next(list_at_);
    if (!batch) return failed(batch.error());
    if (*batch) take(**batch);
    return clock_.steady_now();
}

Result<Revision> Follower::list() {
    Keys all;
    VFMGR_TRY(auto const revision, read_all(all));
    alive();
    compare(std::move(all), revision);
    list_at_ = clock_.steady_now() + settings_.list_again;
    return revision;
}

// In pages, all as of the revision of the first.
Result<Revision> Follower::read_all(Keys& all) {
    Query page{.key = settings_.prefix, .match = Match::prefix, .limit = settings_.page};
    for (;;) {
        VFMGR_TRY(auto found, etcd_.range(page, clock_.steady_now() + page_call));
        if (page.revision == 0) page.revision = found.revision;
        for (auto& entry : found.entries) {
            // The next page begins behind the last key.
            page.from = entry.key + '\0';
            all.insert_or_assign(entry.key, std::move(entry));
        }
        if (!found.more) return page.revision;
    }
}

// Reports what differs: those who follow need not know that there was a list. It also finds what a
// watch never delivered, and what is otherwise after etcd was restored from a backup.
void Follower::compare(Keys listed, Revision revision) {
    listed_at_ = revision;
    if (!keys_) {
        keys_ = std::move(listed);
        std::vector<KeyValue> all;
        for (auto const& [_, entry] : *keys_) all.push_back(entry);
        return calls_.reset(all, revision);
    }
    std::vector<KeyChange> changes;
    for (auto const& [key, entry] : listed)
        if (auto const known = keys_->find(key); known == keys_->end() || known->second != entry)
            changes.push_back({key, entry, entry.mod_revision});
    for (auto const& [key, _] : *keys_)
        if (!listed.contains(key)) changes.push_back({key, std::nullopt, revision});
    keys_ = std::move(listed);
    if (!changes.empty()) calls_.changed(changes, revision);
}

Result<void> Follower::watch_from(Revision revision) {
    VFMGR_TRY(auto watch, etcd_.watch({.key = settings_.prefix, .revision = revision},
                                      clock_.steady_now() + watch_call));
    std::lock_guard const lock(mutex_);
    watch_ = std::move(watch);
    if (interrupted_) watch_->end();
    return {};
}

void Follower::take(WatchBatch const& batch) {
    alive();
    std::vector<KeyChange> changes;
    for (auto const& change : batch.changes) {
        // A list was faster.
        if (change.revision <= listed_at_) continue;
        auto const known = keys_->find(change.key);
        bool const there = known != keys_->end();
        if (change.now ? there && known->second == *change.now : !there) continue;
        if (change.now)
            keys_->insert_or_assign(change.key, *change.now);
        else
            keys_->erase(known);
        changes.push_back(change);
    }
    if (!changes.empty()) calls_.changed(changes, batch.revision);
}

Deadline Follower::failed(Error error) {
    {
        std::lock_guard const lock(mutex_);
        watch_.reset();
        problem_ = std::move(error);
    }
    if (!stale_since()) set_stale(clock_.now());
    return clock_.steady_now() + backoff_.next();
}

void Follower::alive() {
    std::lock_guard const lock(mutex_);
    as_of_ = clock_.now();
}

void Follower::set_stale(std::optional<Time> since) {
    {
        std::lock_guard const lock(mutex_);
        if (!since) problem_.reset();
        if (stale_since_ == since) return;
        stale_since_ = since;
    }
    if (calls_.stale) calls_.stale(since);
}

void Follower::interrupt() {
    std::lock_guard const lock(mutex_);
    interrupted_ = true;
    if (watch_) watch_->end();
}

}  // namespace vfmgr::fleet
