// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/shared_look.hpp"

#include <exception>

namespace vfmgr {

Result<HypervisorView> SharedLook::ask(Look const& look) {
    std::unique_lock lock(mutex_);
    if (!next_) next_ = std::make_shared<Round>();
    auto const round = next_;
    ++round->callers;
    ended_.wait(lock, [&] { return round->found || !looking_; });
    if (round->found) return *round->found;
    if (next_ == round) next_.reset();
    looking_ = true;
    lock.unlock();
    std::exception_ptr bug;
    std::optional<Result<HypervisorView>> found;
    try {
        found = look();
    } catch (...) {
        bug = std::current_exception();  // the others of this round look for themselves
    }
    lock.lock();
    looking_ = false;
    round->found = std::move(found);
    ended_.notify_all();
    if (bug) std::rethrow_exception(bug);
    return *round->found;
}

std::size_t SharedLook::waiting() const {
    std::lock_guard const lock(mutex_);
    return next_ ? next_->callers : 0;
}

}  // namespace vfmgr
