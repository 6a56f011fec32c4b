// SPDX-License-Identifier: Apache-2.0
// Lines of configuration files, and owners found in them: for the parsers behind
// parse_sriov_owners() alone. Pure; any thread.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/text.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/sriov_owners.hpp"

namespace vfmgr::checks {

using Owners = std::vector<SriovOwner>;

inline std::string_view without_quotes(std::string_view text) {
    bool const quoted = text.size() >= 2 && (text.front() == '"' || text.front() == '\'') &&
                        text.back() == text.front();
    return quoted ? text.substr(1, text.size() - 2) : text;
}

struct SettingLine {
    std::string_view text;
    std::size_t number = 0;
};

// Calls `take` with every line that is no comment.
template <class Take>
void each_setting_line(std::string_view text, Take take) {
    for (std::size_t number = 1; !text.empty(); ++number) {
        SettingLine const line{take_line(text), number};
        auto const content = trimmed(line.text);
        if (!content.empty() && content.front() != '#' && content.front() != ';') take(line);
    }
}

inline SriovOwner owner_at(SettingLine const& line, OwnerKind kind, std::string does) {
    return {kind, std::move(does), std::string(trimmed(line.text)), line.number, {}, {}};
}

// Records the first line that shows it, or one that shows more.
inline void note(SriovOwner& owner, SettingLine const& line, std::string does) {
    owner.does = std::move(does);
    owner.line = trimmed(line.text);
    owner.line_number = line.number;
}

// "key = value", each without blanks and quotes.
struct Assignment {
    std::string_view key, value;
};
inline std::optional<Assignment> assignment_in(std::string_view line, char sign) {
    auto value = trimmed(line);
    auto const key = take_until(value, sign);
    if (!key) return std::nullopt;
    return Assignment{trimmed(*key), without_quotes(trimmed(value))};
}

inline std::string makes_vfs(std::string_view count) {
    return fmt::format("makes {} VFs", count);
}

// netplan(5).
[[nodiscard]] Owners in_netplan(std::string_view text);
// Files of Kubernetes' SR-IOV network operator in /etc/sriov-operator.
[[nodiscard]] Owners in_operator_files(std::string_view path, std::string_view text);

}  // namespace vfmgr::checks
