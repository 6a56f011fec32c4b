// SPDX-License-Identifier: Apache-2.0
// Conditional requests (RFC 9110, 13): If-None-Match on a GET, If-Match on a change. Pure
// functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/routes/dispatch.hpp"
#include "vfmgr/plan/if_match.hpp"

namespace vfmgr {

struct EntityTag {
    std::string text;  // with its quotes, without W/
    bool weak = false;
    bool operator==(EntityTag const&) const = default;
};
// The value of If-Match or If-None-Match; nullopt: "*", any.
using EntityTags = std::optional<std::vector<EntityTag>>;

// Also takes a number without quotes, which people write.
[[nodiscard]] Result<EntityTags> parse_entity_tags(std::string_view value);

// Reads If-Match. A tag that is weak, or is none of this API's, names no revision.
[[nodiscard]] Result<IfMatch> if_match(Call const& call);
// Answers 304 in place of a representation that the client has: If-None-Match names its ETag.
[[nodiscard]] Result<http::Response> unless_known(Call const& call, http::Response response);
// Refuses If-None-Match with a change. It would forbid the change, and must not be ignored.
[[nodiscard]] Result<void> refuse_if_none_match(Call const& call);

}  // namespace vfmgr
