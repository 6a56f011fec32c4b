// SPDX-License-Identifier: Apache-2.0
// vfctl attachment enrolment. One thread.
#pragma once

#include "service/cli/add_command.hpp"

namespace vfmgr {

// The command makes a new token for the guest of an attachment, and prints all that it needs.
void add_enrolment(CLI::App& attachment, Session& session);

}  // namespace vfmgr
