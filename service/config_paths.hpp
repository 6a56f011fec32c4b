// SPDX-License-Identifier: Apache-2.0
// Where a daemon's configuration is. A value; any thread.
#pragma once

#include <string>

namespace vfmgr {

struct ConfigPaths {
    std::string file = "/etc/vfmgr/vfmgr.toml";
    std::string folder = "/etc/vfmgr/conf.d";
    bool named = false;  // given by the admin: the file must exist
};

}  // namespace vfmgr
