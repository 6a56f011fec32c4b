// SPDX-License-Identifier: Apache-2.0
// Repairs drift: of RDMA links and the host's filter always, of PFs and their attachments in mode
// enforce. One repair at a time for each subject. A subject that is broken again and again waits
// longer each time.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "api/types/event.hpp"
#include "api/types/time.hpp"
#include "vfmgr/engine/execute.hpp"

namespace vfmgr {

// The longest wait for a subject that is broken or disturbed again and again.
inline constexpr std::chrono::seconds repair_wait_max{30};

struct Repair {
    std::string subject;  // of its operation: "/v1/pfs/0000:01:00.0"
    KernelScope scope;    // the part of the kernel's view that it is planned from
    ClaimKeys claims;
    // Called once to find out whether anything is to be done, and once more under the claims.
    std::function<Result<Plan>(HostView const&, DesiredState const&)> plan;
    OnFailure on_failure = OnFailure::stop;
    // The event for the history at its end if it did something, if it failed in a new way, or if
    // its plan was refused in a new way; the outcome sets its kind and detail. Absent: none.
    std::optional<Event> event{};
    // The attachment whose VF it returns to its VM: once it has, that loss is over in the history.
    std::optional<Attachment> restores{};
    std::function<void()> afterwards{};  // called when something was done
    std::string aspect{};                // a part of the subject; absent: all of it
    std::chrono::seconds wait_max = repair_wait_max;
    [[nodiscard]] std::string pace() const { return subject + aspect; }
};

// Control thread only.
class RepairPace {
  public:
    [[nodiscard]] bool going_on(std::string const& subject) const;
    [[nodiscard]] bool failed(std::string const& subject) const;  // true when the last one failed
    [[nodiscard]] bool may_begin(std::string const& subject, Deadline now) const;
    void begun(std::string const& subject);
    // Absent `failure`: success. True when the failure differs from the last one.
    [[nodiscard]] bool ended(std::string const& subject, std::optional<std::string> failure,
                             Deadline now, std::chrono::seconds wait_max = repair_wait_max);
    // The plan was refused, so nothing was begun and nothing else waits for it. True when this was
    // not reported before, and nothing like it within a minute.
    [[nodiscard]] bool refused(std::string const& subject, std::string const& why, Deadline now);
    // Nothing is to be repaired: the cause of the last failure may be over.
    void all_right(std::string const& subject);
    // Call it after each observation, for a subject that running operations kept from being judged.
    // True when that has lasted so long that a repair should queue up among them and judge in its
    // turn.
    [[nodiscard]] bool kept_waiting(std::string const& subject, Deadline now);
    void observed_at_rest(std::string const& subject);
    // Removes entries that nothing waits for any more.
    void forget_old(Deadline now);

  private:
    struct Pace {
        bool going_on = false;
        unsigned in_a_row = 0;
        unsigned same_failures = 0;  // after the first one
        Deadline not_before{};
        Deadline refused_at{};
        std::optional<Deadline> reported_at;  // when a refusal was reported
        std::optional<std::string> failure;
    };
    std::map<std::string, Pace> paces_;           // by subject
    std::map<std::string, Deadline> busy_since_;  // by subject
};

}  // namespace vfmgr
