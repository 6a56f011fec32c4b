// SPDX-License-Identifier: Apache-2.0
// What is configured and what the last verifications found, in Prometheus's format: the text format
// 0.0.4, base units. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "guest-tools/net/configure.hpp"
#include "guest-tools/net/vf_report.hpp"

namespace vfmgr::guest {

// The texts are UTF-8. Writes a duplicate series only once: a reader would refuse the whole file.
[[nodiscard]] std::string metrics_text(std::string_view version,
                                       std::vector<Configured> const& configured,
                                       std::vector<VfReport> const& reports);

}  // namespace vfmgr::guest
