// SPDX-License-Identifier: Apache-2.0
// One durable log for all hosts of a process. Lines that come while others are being synced are
// synced together. Any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/types/problem.hpp"

namespace vfmgr::simulation {

class Commits {
  public:
    [[nodiscard]] Result<void> open(std::filesystem::path const& file);
    Commits() = default;
    ~Commits();
    Commits(Commits const&) = delete;
    Commits& operator=(Commits const&) = delete;
    // Calls `done` on another thread once the line is on the disk.
    void commit(std::string line, std::function<void()> done);
    [[nodiscard]] std::size_t lines() const { return lines_; }
    [[nodiscard]] std::size_t syncs() const { return syncs_; }

  private:
    void work();

    using Waiting = std::vector<std::pair<std::string, std::function<void()>>>;
    FileDescriptor file_;
    std::mutex mutex_;
    std::condition_variable more_;
    Waiting waiting_;
    bool ends_ = false;
    std::atomic<std::size_t> lines_ = 0, syncs_ = 0;
    std::thread thread_;
};

}  // namespace vfmgr::simulation
