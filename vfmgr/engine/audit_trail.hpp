// SPDX-License-Identifier: Apache-2.0
// Collects audit entries and writes them to the store in batches, by one task of the control thread
// at a time, so that no request waits for the disk and no queue grows. Entries beyond the limit,
// and those that don't merit their own row, are counted: one row per principal, outcome and minute.
// Shared by run() and later answers; any thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "vfmgr/engine/control.hpp"

namespace vfmgr {

struct AuditLimits {
    std::size_t waiting = 256;  // entries that wait for their own row
    std::size_t counted = 256;  // rows of counts per minute; the rest of the minute shares one
    // Between two writes. Each write waits for the disk and delays all clients' requests.
    std::chrono::milliseconds pause{1000};
};

class AuditTrail : public std::enable_shared_from_this<AuditTrail> {
  public:
    // `control` outlives it.
    explicit AuditTrail(Control& control, AuditLimits limits = {})
        : control_(control), limits_(limits) {}

    // Writes the entry at once, or with others at the end of the pause.
    void add(AuditEntry entry);
    // Increments the count of the entry's principal, outcome and minute.
    void count(AuditEntry const& entry);
    // Writes the counts of all minutes before `now`. Call it every few seconds.
    void write_minutes(Time now);
    // Writes all counts. Returns when they are written, or can't be. Never call it on the control
    // thread.
    void finish();

  private:
    using Counted = std::map<std::tuple<Time, std::string, std::string>, AuditEntry>;

    void count_locked(AuditEntry const& entry);
    void begin_writing();
    void write(Control::State& state);

    Control& control_;
    AuditLimits const limits_;
    std::mutex mutex_;                 // guards the members below
    std::vector<AuditEntry> waiting_;  // each gets its own row
    Counted counted_;                  // by minute, principal and outcome
    Time over_{};                      // the next task writes the counts of earlier minutes
    bool writing_ = false;             // a task is queued or runs
    Deadline next_write_{};            // no write before this
};

}  // namespace vfmgr
