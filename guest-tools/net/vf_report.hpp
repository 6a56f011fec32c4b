// SPDX-License-Identifier: Apache-2.0
// What one verification of a VF found, with what only the VM knows of it. Values, and how people
// read them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/types/verification.hpp"

namespace vfmgr::guest {

struct VfReport {
    Verification verification;
    std::string netdev;                     // empty: the VF had none
    std::string rdma_device;                // empty: none was opened
    std::vector<std::string> at_once_with;  // attachments that were tested at the same time
    bool operator==(VfReport const&) const = default;
};

// One object: the verification's members, as the host sent them, and beside them the VM's.
void to_json(nlohmann::json& out, VfReport const& report);
void read(JsonReader& reader, VfReport& report);

// Several lines, each ended: what verify::describe() says; where, when and for how long.
[[nodiscard]] std::string describe(VfReport const& report);

// What vf-guest leaves with: 0 when it passed, otherwise 1.
[[nodiscard]] int exit_code(VfReport const& report);

}  // namespace vfmgr::guest
