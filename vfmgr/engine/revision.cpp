// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/revision.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace vfmgr {

Result<void> check_revision(std::uint64_t revision, std::string const& what,
                            IfMatch const& if_match) {
    auto const& any_of = if_match.any_of;
    if (!any_of || std::ranges::find(*any_of, revision) != any_of->end()) return {};
    Error error{Problem::precondition_failed,
                fmt::format("{} is at revision {}, not {}", what, revision,
                            any_of->empty() ? "at one that If-Match names"
                                            : fmt::format("{}", fmt::join(*any_of, " or "))),
                "read it again and apply your change to the current one"};
    error.revision = revision;
    return fail(std::move(error));
}

}  // namespace vfmgr
