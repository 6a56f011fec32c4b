// SPDX-License-Identifier: Apache-2.0
// Threads for the work of requests that may block: straight-line code that waits for etcd or for a
// host. Principals take turns, and each has a share of what waits and of what runs, so one that
// asks for slow hosts a hundred times keeps nobody from the others. Any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::fleet {

struct WorkerLimits {
    std::size_t threads = 32;
    std::size_t waiting_max = 1024;     // of all principals
    std::size_t waiting_each_max = 64;  // of a principal, what runs included
    bool operator==(WorkerLimits const&) const = default;
};

class Workers {
  public:
    // Ends early, if it can, once a stop is requested.
    using Work = std::function<void(std::stop_token const& stop)>;

    explicit Workers(WorkerLimits limits, std::function<void(std::string const& bug)> on_bug = {});
    // Waits for what runs.
    ~Workers();
    Workers(Workers const&) = delete;
    Workers& operator=(Workers const&) = delete;

    // Runs `work` on one of the threads, when it is its principal's turn; a principal has half of
    // them at most. Fails with unavailable if too much waits already, or after a stop.
    [[nodiscard]] Result<void> submit(std::string const& who, Work work);
    // Requests a stop and drops what waits. False: something still runs at the deadline.
    [[nodiscard]] bool stop(Deadline patience);

    struct Load {
        std::size_t waiting = 0;
        std::size_t running = 0;
        std::uint64_t refused = 0;  // since the start
    };
    [[nodiscard]] Load load() const;

  private:
    struct Impl;
    std::shared_ptr<Impl> impl_;
};

}  // namespace vfmgr::fleet
