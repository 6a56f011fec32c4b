// SPDX-License-Identifier: Apache-2.0
// The certificate of an attachment that ended, for people. Pure functions, any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "service/cli/table.hpp"

namespace vfmgr {

// One row, so that those of several attachments can be put together.
[[nodiscard]] Table certificate_table(nlohmann::json const& certificate);
[[nodiscard]] std::string certificate_page(nlohmann::json const& certificate,
                                           Options const& options);

}  // namespace vfmgr
