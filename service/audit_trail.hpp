// SPDX-License-Identifier: Apache-2.0
// Who asked for what, on its way into the store: together, by one task of the control thread at a
// time, so that nobody who asks waits for it and no queue of it grows. What is too much to be
// written one by one, and what is not worth it, is counted: a row for each who, outcome and minute.
// Shared by run() and by whoever answers later; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "vfmgr/engine/control.hpp"

namespace vfmgr {

struct AuditLimits {
    std::size_t waiting = 256;  // to be written one by one
    std::size_t counted = 256;  // of one minute; the others of that minute are one row
    // Between two writes, which each wait for the disk, and everybody's requests with them.
    std::chrono::milliseconds pause{1000};
};

class AuditTrail : public std::enable_shared_from_this<AuditTrail> {
  public:
    // `control` outlives it.
    explicit AuditTrail(Control& control, AuditLimits limits = {})
        : control_(control), limits_(limits) {}

    // Written at once, or with others at the end of the pause.
    void add(AuditEntry entry);
    // As one more of those who asked in that minute with this outcome.
    void count(AuditEntry const& entry);
    // Those of the minutes before `now`. Call it now and then.
    void write_minutes(Time now);
    // All that is counted. Returns when it is written, or can't be. Not on the control thread.
    void finish();

  private:
    using Counted = std::map<std::tuple<Time, std::string, std::string>, AuditEntry>;

    void count_locked(AuditEntry const& entry);
    void begin_writing();
    void write(Control::State& state);

    Control& control_;
    AuditLimits const limits_;
    std::mutex mutex_;                 // guards what follows
    std::vector<AuditEntry> waiting_;  // to be written one by one
    Counted counted_;                  // by minute, who and outcome
    Time over_{};                      // minutes before this one are to be written
    bool writing_ = false;             // it will be
    Deadline next_write_{};            // not before
};

}  // namespace vfmgr
