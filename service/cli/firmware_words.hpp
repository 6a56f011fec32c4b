// SPDX-License-Identifier: Apache-2.0
// The words of `vfctl firmware`: parses the command line and formats cards for display. Pure
// functions, any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/types/firmware.hpp"
#include "service/cli/table.hpp"

namespace vfmgr {

struct FirmwareWords {
    std::vector<std::string> pfs;
    FirmwareSettings settings;
};
// Accepts PFs and NAME=VALUE in any order, at least one of each; values as in mlxconfig: 1, True,
// ETH or 2.
[[nodiscard]] Result<FirmwareWords> firmware_words(std::vector<std::string> const& words);

[[nodiscard]] Table card_table(std::vector<FirmwareView> const& cards);
[[nodiscard]] Table setting_table(FirmwareCard const& card);
[[nodiscard]] std::string card_page(FirmwareView const& view, Options const& options);
// Joins the {"plan": …} of several cards into one: each step in order, each sentence once.
[[nodiscard]] nlohmann::json joined_plans(std::vector<nlohmann::json> const& dry_runs);

}  // namespace vfmgr
