// SPDX-License-Identifier: Apache-2.0
// Decides which attachment with a schedule is verified next, and when. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

struct DueVerification {
    std::string attachment;
    Time at{};  // may be in the past
    bool operator==(DueVerification const&) const = default;
};

// Returns the first due one of those that are attached with verify_every_seconds: that long after
// the start of the last run, or after the attachment was made. `not_before` postpones single
// attachments.
[[nodiscard]] std::optional<DueVerification> next_verification(
    DesiredState const& desired, std::map<std::string, Time> const& not_before, Time now);

// Why nothing can be verified in the VM now, with the remedy; nullopt: it can.
struct Hindrance {
    std::string detail;
    std::string remedy;
};
// Over a VF of such a PF nothing can be verified, regardless of the caller and the VM's state.
[[nodiscard]] std::optional<Hindrance> verification_hindrance(PfInfo const& pf);
[[nodiscard]] std::optional<Hindrance> verification_hindrance(HostView const& host,
                                                              Attachment const& attachment);

}  // namespace vfmgr
