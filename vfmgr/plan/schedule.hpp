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

// Returns, of the attachments with verify_every_seconds, the one that is due first. It is due that
// long after its last run started or, without a run, after it was made. `not_before` postpones
// single attachments.
[[nodiscard]] std::optional<DueVerification> next_verification(
    DesiredState const& desired, std::map<std::string, Time> const& not_before, Time now);

// Why nothing can be verified in the VM now, with the remedy; nullopt: it can.
struct Hindrance {
    std::string detail;
    std::string remedy;
};
// Returns one for a PF over whose VFs nothing can be verified, whatever the caller and VM state.
[[nodiscard]] std::optional<Hindrance> verification_hindrance(PfInfo const& pf);
[[nodiscard]] std::optional<Hindrance> verification_hindrance(HostView const& host,
                                                              Attachment const& attachment);

}  // namespace vfmgr
