// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/registry.hpp"

namespace vfmgr::fleet {

Registry::Registry(Etcd& etcd, Clock const& clock, Changed changed)
    : clock_(clock),
      changed_(std::move(changed)),
      follower_(etcd, clock, {.prefix = {}},
                {.reset =
                     [this](std::vector<KeyValue> const& all, Revision revision) {
                         std::vector<KeyChange> changes;
                         for (auto const& entry : all)
                             changes.push_back({entry.key, entry, entry.mod_revision});
                         take(changes, revision);
                     },
                 .changed = [this](std::vector<KeyChange> const& changes,
                                   Revision revision) { take(changes, revision); },
                 .stale =
                     [this](std::optional<Time> since) {
                         auto next = *state();
                         next.stale_since = since;
                         publish(std::move(next));
                     }}) {
    State unknown;
    unknown.stale_since = clock.now();
    state_ = std::make_shared<State const>(std::move(unknown));
}

void Registry::take(std::vector<KeyChange> const& changes, Revision revision) {
    auto next = with_changes(*state(), changes);
    next.revision = revision;
    publish(std::move(next));
}

void Registry::publish(State next) {
    next.as_of = clock_.now();
    auto const published = std::make_shared<State const>(std::move(next));
    {
        std::lock_guard const lock(mutex_);
        state_ = published;
    }
    news_.notify_all();
    changed_(published);
}

std::shared_ptr<State const> Registry::state() const {
    std::lock_guard const lock(mutex_);
    return state_;
}

bool Registry::wait_for(Revision revision, Deadline deadline) const {
    std::unique_lock lock(mutex_);
    return news_.wait_until(lock, deadline, [&] { return state_->revision >= revision; });
}

}  // namespace vfmgr::fleet
