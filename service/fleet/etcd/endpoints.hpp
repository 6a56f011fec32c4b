// SPDX-License-Identifier: Apache-2.0
// The addresses of etcd's members, as a configuration has them. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "api/types/problem.hpp"

namespace vfmgr::fleet {

struct Endpoints {
    std::vector<std::string> hosts;  // "10.0.0.1:2379", "[fd00::1]:2379"
    bool encrypted = true;
    bool operator==(Endpoints const&) const = default;
};
// Reads "https://HOST:PORT". Fails with invalid_request, which names the text, also where http://
// and https:// are mixed or a member is named twice.
[[nodiscard]] Result<Endpoints> parse_endpoints(std::vector<std::string> const& urls);

}  // namespace vfmgr::fleet
