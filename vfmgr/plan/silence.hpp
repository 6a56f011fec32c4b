// SPDX-License-Identifier: Apache-2.0
// What the host itself knows of a guest on TCP that did not report: over a broken VF it can't say
// what is wrong. Pure.
#pragma once

#include <optional>
#include <string>

#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// The VF's counters when the run began, and at its deadline; absent: not reported.
struct VfCounted {
    std::optional<VfCounters> before{};
    std::optional<VfCounters> after{};
};

// "the host counted nothing that the VM sent over VF …; its guest has not enrolled".
[[nodiscard]] std::string silence_of(Attachment const& attachment, VfCounted const& counted,
                                     HostView const& host, DesiredState const& desired);

}  // namespace vfmgr
