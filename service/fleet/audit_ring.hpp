// SPDX-License-Identifier: Apache-2.0
// The latest entries of this replica's audit, in memory: the journal has them all. Refused requests
// and the others each have a part of their own, so that a flood of refusals leaves the changes
// there. Any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "api/types/daemon.hpp"
#include "service/routes/gate.hpp"
#include "vfmgr/store/row_range.hpp"

namespace vfmgr::fleet {

struct AuditLimits {
    std::size_t entries = 4096;  // in each of the two parts
    std::size_t text_bytes = 512;
    std::size_t counted = 256;  // rows of counts per minute; the rest of the minute shares one
};

class AuditRing {
  public:
    explicit AuditRing(AuditLimits limits = {}) : limits_(limits) {}

    void add(AuditEntry entry);
    // Increments the count of the entry's principal, outcome and minute.
    void count(AuditEntry const& entry);
    // Newest first. Empty texts match every entry.
    [[nodiscard]] Rows<AuditEntry> rows(std::string const& who, std::string const& outcome,
                                        RowRange const& range) const;
    // Writes into it, which outlives what is returned.
    [[nodiscard]] Audit audit();

  private:
    struct Numbered {
        std::int64_t number = 0;
        AuditEntry entry;
    };
    using Part = std::deque<Numbered>;

    [[nodiscard]] Part& part_of(AuditEntry const& entry) {
        return entry.refused ? refused_ : others_;
    }
    AuditEntry* counted_row(Time minute, std::string const& who, AuditEntry const& entry);
    void push(AuditEntry entry);

    AuditLimits const limits_;
    mutable std::mutex mutex_;  // guards the members below
    std::int64_t last_ = 0;
    Part refused_;
    Part others_;
    Time minute_{};            // of the counted rows
    std::size_t counted_ = 0;  // rows of that minute
};

}  // namespace vfmgr::fleet
