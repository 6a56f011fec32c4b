// SPDX-License-Identifier: Apache-2.0
// The caller's name and role. Values.
#pragma once

#include <string>

#include "api/types/enum_names.hpp"

namespace vfmgr {

// Each role includes those before it: read; attach and detach; PF specs, quarantine, tokens.
enum class Role { viewer, operator_, admin };

struct Principal {
    std::string name;  // "uid:0", "token:<id>"
    Role role = Role::viewer;
};

}  // namespace vfmgr
