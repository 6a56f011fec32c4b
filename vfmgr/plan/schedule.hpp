// SPDX-License-Identifier: Apache-2.0
// Which lease with a schedule is verified next, and when. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

struct DueVerification {
    std::string attachment;
    Time at{};  // may be past
    bool operator==(DueVerification const&) const = default;
};

// The first of those that are attached with verify_every_seconds: so long after the start of the
// last run, or after the attachment was made. `not_before` puts single attachments off.
[[nodiscard]] std::optional<DueVerification> next_verification(
    DesiredState const& desired, std::map<std::string, Time> const& not_before, Time now);

// Why nothing can be verified in the VM now, with what to do about it; nullopt: it can.
struct Hindrance {
    std::string detail;
    std::string remedy;
    bool operator==(Hindrance const&) const = default;
};
// Whoever asks, and whatever the VM does: over a VF of such a PF nothing can be verified.
[[nodiscard]] std::optional<Hindrance> verification_hindrance(PfInfo const& pf);
[[nodiscard]] std::optional<Hindrance> verification_hindrance(HostView const& host,
                                                              Attachment const& lease);

}  // namespace vfmgr
