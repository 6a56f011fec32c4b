// SPDX-License-Identifier: Apache-2.0
// The keys of the host's rules. Include in .cpp files only. One thread.
#pragma once

#include "service/config_tables.hpp"
#include "service/host_rules.hpp"

namespace vfmgr {

// To be read into `rules`.
[[nodiscard]] Keys host_rule_keys(ConfigTables& tables, HostRules& rules);

}  // namespace vfmgr
