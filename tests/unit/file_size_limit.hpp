// SPDX-License-Identifier: Apache-2.0
// A disk that fails, for this process: writes end with EFBIG, which SQLite takes for a disk fault,
// not for a full disk (room_test.cpp has that). For tests only.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

namespace vfmgr::test {

// While an object lives, no file of this process may grow beyond `bytes`. Unless SIGXFSZ is
// ignored, a write would end the process instead of failing.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
        EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
        rlimit const limit{bytes, before_.rlim_max};
        EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    }
    ~FileSizeLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        ::signal(SIGXFSZ, handler_);
    }
    FileSizeLimit(FileSizeLimit const&) = delete;
    FileSizeLimit& operator=(FileSizeLimit const&) = delete;

  private:
    sighandler_t handler_;
    rlimit before_{};
};

}  // namespace vfmgr::test
