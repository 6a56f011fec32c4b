// SPDX-License-Identifier: Apache-2.0
// A disk that fails, for this process: writes end with EFBIG, which SQLite takes for a disk fault,
// not for a full disk (room_test.cpp has that). For tests only.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>

namespace vfmgr::test {

// While an object lives, no file of this process may grow beyond `bytes`. Unless SIGXFSZ is
// handled, a write would end the process instead of failing.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, count)) {
        EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
        rlimit const limit{bytes, before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    }
    ~FileSizeLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        ::signal(SIGXFSZ, handler_);
    }
    // Writes of this process that failed so far.
    static int refused() { return refused_; }
    FileSizeLimit(FileSizeLimit const&) = delete;
    FileSizeLimit& operator=(FileSizeLimit const&) = delete;

  private:
    static void count(int) { ++refused_; }
    static inline std::atomic<int> refused_ = 0;
    static_assert(decltype(refused_)::is_always_lock_free);
    sighandler_t handler_;
    rlimit before_{};
};

}  // namespace vfmgr::test
