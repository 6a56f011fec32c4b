// SPDX-License-Identifier: Apache-2.0
// What the API answered about one large host (tests/fleet/record_views), said of many hosts that
// differ by their numbers. Values; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/problem.hpp"

namespace vfmgr::simulation {

// A recorded document, cut where the host's number is in it.
class Recorded {
  public:
    explicit Recorded(std::string const& text);
    // The same document of host `number`, 1 to 65535. `drifted`: its first VF lost a setting.
    [[nodiscard]] std::string of(std::uint32_t number, bool drifted) const;

  private:
    enum class Mark { none, uuid, name, mac, net, pf_mac, drift };
    struct Piece {
        std::string text;
        Mark then;
    };
    static std::vector<std::pair<std::string, Mark>> const marks;
    std::vector<Piece> pieces_;
};

struct Views {
    std::map<std::string, Recorded> documents;  // by path: "/v1/pfs"
    std::vector<VfId> free;                     // that no attachment and no reservation has
};
[[nodiscard]] Result<Views> read_views(std::filesystem::path const& folder);

}  // namespace vfmgr::simulation
