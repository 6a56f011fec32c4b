// SPDX-License-Identifier: Apache-2.0
// The findings of one verification of a VF, with what only the VM knows about it. Values, and their
// text for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/types/verification.hpp"

namespace vfmgr::guest {

struct VfReport {
    Verification verification;
    std::string ifname;                     // empty: the VF had none
    std::string rdma_device;                // empty: none was opened
    std::vector<std::string> at_once_with;  // attachments tested at the same time
    bool operator==(VfReport const&) const = default;
};

// One object: the verification's members as the host sent them, and the VM's beside them.
void to_json(nlohmann::json& out, VfReport const& report);
void read(JsonReader& reader, VfReport& report);

// Several lines, each ending in a newline: verify::describe(), and where, when and for how long.
[[nodiscard]] std::string describe(VfReport const& report);

// vf-guest's exit status: 0 when it passed, otherwise 1.
[[nodiscard]] int exit_code(VfReport const& report);

}  // namespace vfmgr::guest
