// SPDX-License-Identifier: Apache-2.0
// What is not as it is wanted is put right: RDMA links and the host's filter always, PFs and their
// leases in mode enforce. One repair at a time for each thing, and what somebody undoes again and
// again waits longer each time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/history_event.hpp"
#include "api/types/time.hpp"
#include "vfmgr/engine/execute.hpp"

namespace vfmgr {

// Of what somebody breaks again and again, or disturbs.
inline constexpr std::chrono::seconds repair_wait_max{30};

struct Repair {
    std::string subject;              // of its operation: "/v1/pfs/0000:01:00.0"
    KernelScope scope;                // of the kernel's view that it is planned from
    std::vector<std::string> claims;  // PF before VM
    // Once to see whether anything is to be done, and once more under the claims.
    std::function<Result<Plan>(HostView const&, DesiredState const&)> plan;
    OnFailure on_failure = OnFailure::stop;
    std::optional<HistoryEvent> event{};     // of whose history its end is; absent: of none
    std::optional<Attachment> gives_back{};  // to whose VM
    std::function<void()> afterwards{};      // when something was done
    std::string aspect{};                    // of the subject; absent: all of it
    std::chrono::seconds wait_max = repair_wait_max;
    [[nodiscard]] std::string pace() const { return subject + aspect; }
};

// Control thread only.
class RepairPace {
  public:
    [[nodiscard]] bool going_on(std::string const& subject) const;
    [[nodiscard]] bool failed(std::string const& subject) const;  // the last one
    [[nodiscard]] bool may_begin(std::string const& subject, Deadline now) const;
    void begun(std::string const& subject);
    // Absent `failure`: it went well. True when that failure is not the last one's.
    [[nodiscard]] bool ended(std::string const& subject, std::optional<std::string> failure,
                             Deadline now, std::chrono::seconds wait_max = repair_wait_max);
    // Nothing was begun, since the plan was refused: it holds nothing else up. True when that was
    // not told before, and nothing like it within a minute.
    [[nodiscard]] bool refused(std::string const& subject, std::string const& why, Deadline now);
    // Nothing is to be repaired: what made the last one fail may be over.
    void all_right(std::string const& subject);
    // For each look, of what operations were changing meanwhile, so that it could not be judged.
    // True when that has gone on for so long that a repair queues up among them and judges in its
    // turn.
    [[nodiscard]] bool kept_waiting(std::string const& subject, Deadline now);
    void seen_at_rest(std::string const& subject);
    // Of those that nobody waits for any more.
    void forget_old(Deadline now);

  private:
    struct Pace {
        bool going_on = false;
        unsigned in_a_row = 0;
        unsigned same_failures = 0;  // after the first one
        Deadline not_before{};
        Deadline refused_at{};
        std::optional<Deadline> told_at;  // a refusal
        std::optional<std::string> failure;
    };
    std::map<std::string, Pace> paces_;           // by subject
    std::map<std::string, Deadline> busy_since_;  // by subject
};

}  // namespace vfmgr
