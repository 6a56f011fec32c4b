// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/revision.hpp"

#include <fmt/format.h>

namespace vfmgr {

Result<void> check_revision(std::uint64_t revision, std::string const& what,
                            std::optional<std::uint64_t> if_match) {
    if (!if_match || *if_match == revision) return {};
    return fail(Problem::precondition_failed,
                fmt::format("{} is at revision {}, not {}", what, revision, *if_match),
                "read it again and apply your change to the current one");
}

}  // namespace vfmgr
