// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/revision.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "vfmgr/plan/tenants.hpp"

namespace vfmgr {

std::uint64_t revision_of(Attachment const& attachment, std::string const& tenant) {
    auto const& seen = tenant.empty() ? attachment : for_tenants(attachment);
    return stable_hash(to_json_text(seen));
}

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
