// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/shared_observation.hpp"

#include <exception>

namespace vfmgr {

Result<HypervisorView> SharedObservation::ask(Observe const& observe) {
    std::unique_lock lock(mutex_);
    if (!next_) next_ = std::make_shared<Round>();
    auto const round = next_;
    ++round->callers;
    ended_.wait(lock, [&] { return round->found || !observing_; });
    if (round->found) return *round->found;
    if (next_ == round) next_.reset();
    observing_ = true;
    lock.unlock();
    std::exception_ptr bug;
    std::optional<Result<HypervisorView>> found;
    try {
        found = observe();
    } catch (...) {
        bug = std::current_exception();  // the round's other callers observe for themselves
    }
    lock.lock();
    observing_ = false;
    round->found = std::move(found);
    ended_.notify_all();
    if (bug) std::rethrow_exception(bug);
    return *round->found;
}

std::size_t SharedObservation::waiting() const {
    std::lock_guard const lock(mutex_);
    return next_ ? next_->callers : 0;
}

}  // namespace vfmgr
