// SPDX-License-Identifier: Apache-2.0
#include "api/http/io_thread.hpp"

#include <signal.h>

namespace vfmgr::http {

std::thread start_io_thread(std::function<void()> work) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread thread(std::move(work));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
}

}  // namespace vfmgr::http
