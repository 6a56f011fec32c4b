// SPDX-License-Identifier: Apache-2.0
// Commands of `vfctl fleet` that have files of their own. `session` outlives the tree.
#pragma once

#include "service/cli/session.hpp"

namespace vfmgr {

void add_fleet_init(CLI::App& fleet, Session& session);
void add_fleet_joining(CLI::App& fleet, Session& session);
void add_fleet_identities(CLI::App& fleet, Session& session);

}  // namespace vfmgr
