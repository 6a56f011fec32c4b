// SPDX-License-Identifier: Apache-2.0
// The caller's name and role. Values.
#pragma once

#include <string>

#include "api/types/daemon.hpp"

namespace vfmgr {

struct Principal {
    std::string name;  // "uid:0", "token:<id>"
    Role role = Role::viewer;
};

}  // namespace vfmgr
