// SPDX-License-Identifier: Apache-2.0
// The findings of one verification of a VF, with what only the VM knows about it. Values, and their
// text for people.
#pragma once

#include <string>
#include <vector>

#include "api/types/json_fwd.hpp"
#include "api/types/test_lines.hpp"
#include "api/types/verification.hpp"

namespace vfmgr::guest {

struct VfReport {
    Verification verification;
    std::string ifname;                     // empty: the VF had none
    std::string rdma_device;                // empty: none was opened
    std::vector<std::string> at_once_with;  // attachments tested at the same time
    bool operator==(VfReport const&) const = default;
};

// Several lines, each ending in a newline: verify::describe(), and where, when and for how long.
[[nodiscard]] std::string describe(VfReport const& report, Figures shown = Figures::important);

// vf-guest's exit status: 0 when it passed, otherwise 1.
[[nodiscard]] int exit_code(VfReport const& report);

}  // namespace vfmgr::guest

extern template struct vfmgr::Json<vfmgr::guest::VfReport>;
