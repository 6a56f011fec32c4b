// SPDX-License-Identifier: Apache-2.0
// While it lives this process gets no new descriptor: its limit is its current number.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>

#include "api/os/descriptor.hpp"

namespace vfmgr::test {

class NoDescriptorsLeft {
  public:
    // The kernel gives out the lowest free one: all below the limit are taken.
    NoDescriptorsLeft() {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        FileDescriptor const next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        auto none = before_;
        none.rlim_cur = static_cast<rlim_t>(next.get());
        ::setrlimit(RLIMIT_NOFILE, &none);
    }
    ~NoDescriptorsLeft() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    NoDescriptorsLeft(NoDescriptorsLeft const&) = delete;
    NoDescriptorsLeft& operator=(NoDescriptorsLeft const&) = delete;

  private:
    rlimit before_{};
};

}  // namespace vfmgr::test
