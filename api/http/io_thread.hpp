// SPDX-License-Identifier: Apache-2.0
// The thread of a server or of a pool of clients. Internal to api/http.
#pragma once

#include <exception>
#include <functional>
#include <thread>

#include "api/http/http.hpp"

namespace vfmgr::http {

// Contains exceptions. One that leaves the io thread ends the daemon; this limits the damage to the
// connection that threw.
template <class Work>
bool returns(OnBug const& on_bug, Work work) {
    try {
        work();
        return true;
    } catch (std::exception const& bug) {
        on_bug(bug.what());
    } catch (...) {
        on_bug("an exception of unknown type");
    }
    return false;
}

// Signals go to the thread that waits for them, never to this one.
[[nodiscard]] std::thread start_io_thread(std::function<void()> work);

}  // namespace vfmgr::http
