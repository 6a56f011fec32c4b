// SPDX-License-Identifier: Apache-2.0
// Documents of api/ that vfmgrd serves, as part of the program: what it serves always describes the
// version that runs. embed.cpp writes them at build time. Constants; any thread.
#pragma once

#include <string_view>

namespace vfmgr::documents {

extern std::string_view const openapi;   // api/openapi.yaml as JSON
extern std::string_view const problems;  // api/problems.md

}  // namespace vfmgr::documents
