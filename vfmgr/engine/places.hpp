// SPDX-License-Identifier: Apache-2.0
// Limits how many operations run at once. Operations that wait for a guest are counted apart, with
// a share for each VM. Operations that detach a VF have places that no other operation can take.
// Any thread.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "api/types/problem.hpp"

namespace vfmgr {

struct PlaceLimits {
    std::size_t changing_max = 64;
    std::size_t detaching_max = 64;
    std::size_t waiting_max = 256;
    std::size_t waiting_of_a_vm_max = 16;
};

// What an operation does on the host, and which VM's guest it waits for.
struct PlaceRequest {
    enum class Work { none, changes, detaches };
    Work work = Work::changes;
    std::optional<std::string> vm{};  // UUID
};

class Places {
  public:
    explicit Places(PlaceLimits limits = {}) : limits_(limits) {}

    // Takes all places that the operation will need, so that it is not refused half-way.
    [[nodiscard]] Result<void> enter(std::string const& operation, PlaceRequest const& desired);
    // rest() frees the operation's working place while it waits for its guest. resume() takes one
    // again, also beyond the limit.
    void rest(std::string const& operation);
    void resume(std::string const& operation);
    void leave(std::string const& operation);

  private:
    void set_work(std::string const& operation, PlaceRequest::Work work);
    PlaceLimits const limits_;
    std::mutex mutex_;
    std::map<std::string, PlaceRequest> taken_;  // by operation; mutex_
};

}  // namespace vfmgr
