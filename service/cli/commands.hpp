// SPDX-License-Identifier: Apache-2.0
// vfctl without its main: the command line in, the exit code out. One thread.
#pragma once

#include <string>
#include <vector>

namespace vfmgr {

// `arguments` excludes the program's name. Data goes to standard output, all else to stderr.
[[nodiscard]] int run_vfctl(std::vector<std::string> arguments);

}  // namespace vfmgr
