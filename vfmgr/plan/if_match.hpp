// SPDX-License-Identifier: Apache-2.0
// What a change is based on. A value; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace vfmgr {

// The revisions that a change may be based on: those of an If-Match, or every one.
struct IfMatch {
    std::optional<std::vector<std::uint64_t>> any_of{};  // absent: every revision

    IfMatch() = default;
    IfMatch(std::uint64_t revision) : any_of(std::vector<std::uint64_t>{revision}) {}
    explicit IfMatch(std::vector<std::uint64_t> revisions) : any_of(std::move(revisions)) {}
};

}  // namespace vfmgr
