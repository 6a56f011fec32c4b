// SPDX-License-Identifier: Apache-2.0
// How many operations there may be at once. Those that wait for a guest are counted apart, and each
// VM has its share of them; those that take a VF back have places that nothing else takes. Any
// thread.
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

// What an operation does on the host, and for the guest of which VM it waits.
struct PlaceWanted {
    enum class Work { none, changes, detaches };
    Work work = Work::changes;
    std::optional<std::string> vm{};  // UUID
};

class Places {
  public:
    explicit Places(PlaceLimits limits = {}) : limits_(limits) {}

    // For all that the operation will do, so that nothing is refused once it has begun.
    [[nodiscard]] Result<void> enter(std::string const& operation, PlaceWanted const& wanted);
    // While it waits for its guest others may have its place; afterwards it works whoever does.
    void rest(std::string const& operation);
    void resume(std::string const& operation);
    void leave(std::string const& operation);

  private:
    void set_work(std::string const& operation, PlaceWanted::Work work);
    PlaceLimits const limits_;
    std::mutex mutex_;
    std::map<std::string, PlaceWanted> taken_;  // by operation; mutex_
};

}  // namespace vfmgr
