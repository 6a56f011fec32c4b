// SPDX-License-Identifier: Apache-2.0
// Reserves file descriptors for work that must succeed even when the process has no others left.
// Any thread.
#pragma once

#include <fcntl.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/types/problem.hpp"

namespace vfmgr {

class SpareDescriptors {
  public:
    explicit SpareDescriptors(std::size_t count) : kept_(count) { keep(); }
    SpareDescriptors(SpareDescriptors const&) = delete;
    SpareDescriptors& operator=(SpareDescriptors const&) = delete;

    // Runs `work`. If it fails with EMFILE or ENFILE, frees the reserve, runs it once more, and
    // refills the reserve.
    template <class Work>
    auto try_with(Work work) -> decltype(work()) {
        {
            std::lock_guard const lock(mutex_);
            keep();  // refills what the last call could not
        }
        auto done = work();
        if (done || !lacks_descriptors(done.error())) return done;
        std::lock_guard const lock(mutex_);
        for (auto& one : kept_) one.reset();
        done = work();
        keep();
        return done;
    }

  private:
    static bool lacks_descriptors(Error const& error) {
        return std::ranges::any_of(error.causes, [](Cause const& cause) {
            return cause.code == "EMFILE" || cause.code == "ENFILE";
        });
    }
    void keep() {
        for (auto& one : kept_)
            if (!one) one = FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    }

    std::mutex mutex_;
    std::vector<FileDescriptor> kept_;  // guarded by mutex_
};

}  // namespace vfmgr
