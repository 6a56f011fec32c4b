// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/etcd/lease.hpp"

#include <utility>

namespace vfmgr::fleet {

using std::chrono::milliseconds;

KeptLease::KeptLease(Etcd& etcd, Clock const& clock, std::chrono::seconds ttl)
    : etcd_(etcd),
      clock_(clock),
      ttl_(ttl),
      due_(clock.steady_now()),
      backoff_(milliseconds(100), milliseconds(ttl) / 6) {}

bool KeptLease::trusted() const {
    return clock_.steady_now() < trusted_until();
}

Deadline KeptLease::due() const {
    return id_ == 0 ? due_ : std::min(due_, trusted_until());
}

LeaseId KeptLease::keep() {
    if (id_ != 0 && !trusted()) {
        doubt();
        return id_;
    }
    if (clock_.steady_now() < due_) return id_;
    if (id_ == 0)
        begin();
    else
        go_on();
    return id_;
}

void KeptLease::answered(Deadline sent, std::chrono::seconds ttl) {
    trusted_until_ = (sent + milliseconds(ttl) * 2 / 3).time_since_epoch();
    due_ = sent + milliseconds(ttl) / 3;
    problem_.reset();
    backoff_.reset();
}

void KeptLease::begin() {
    auto const sent = clock_.steady_now();
    auto const until = sent + milliseconds(ttl_) / 3;
    if (doubted_ != 0 && etcd_.revoke(doubted_, until)) doubted_ = 0;
    auto const asked = clock_.steady_now();
    if (auto granted = etcd_.grant(ttl_, until)) {
        id_ = granted->id;
        answered(asked, granted->ttl);
    } else {
        problem_ = std::move(granted).error();
        due_ = clock_.steady_now() + backoff_.next();
    }
}

void KeptLease::go_on() {
    auto const sent = clock_.steady_now();
    auto const until = std::min(trusted_until(), sent + milliseconds(ttl_) / 3);
    auto kept = etcd_.keep_alive(id_, until);
    if (kept) return answered(sent, *kept);
    problem_ = std::move(kept).error();
    if (problem_->problem == Problem::not_found || !trusted()) return doubt();
    due_ = clock_.steady_now() + backoff_.next();
}

void KeptLease::doubt() {
    doubted_ = std::exchange(id_, 0);
    trusted_until_ = Deadline::duration::zero();
    due_ = clock_.steady_now();
}

void KeptLease::let_go(Deadline deadline) {
    trusted_until_ = Deadline::duration::zero();
    if (auto const lease = std::exchange(id_, 0); lease != 0)
        static_cast<void>(etcd_.revoke(lease, deadline));
    due_ = clock_.steady_now();
}

}  // namespace vfmgr::fleet
