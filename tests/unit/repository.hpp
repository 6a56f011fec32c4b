// SPDX-License-Identifier: Apache-2.0
// Where this checkout is, for tests that read its documents and fixtures.
#pragma once

#include <filesystem>

namespace vfmgr::test {

[[nodiscard]] std::filesystem::path repository();

}  // namespace vfmgr::test
