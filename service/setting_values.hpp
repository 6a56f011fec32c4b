// SPDX-License-Identifier: Apache-2.0
// What a reload of the configuration changes, key by key, and how that is logged. Values and free
// functions; any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "service/api_settings.hpp"
#include "service/program.hpp"

namespace vfmgr {

using SettingValues = std::map<std::string, std::string>;  // by key: "limits.changes_burst"

void add_values(SettingValues& values, UnixSettings const& unix_socket);
void add_values(SettingValues& values, TlsSettings const& tls);  // all but `enabled`
void add_values(SettingValues& values, RoleSettings const& roles);
void add_limits(SettingValues& values, http::Limits const& limits, EventStreamLimits const& events,
                RateLimit const& changes);

struct KeyChange {
    std::string key;     // "limits.changes_per_second"
    std::string before;  // empty: it was not set
    std::string after;
    bool operator==(KeyChange const&) const = default;
};

// By key.
[[nodiscard]] std::vector<KeyChange> changes_between(SettingValues const& before,
                                                     SettingValues const& after);

// `later`: what only a restart of the program applies.
void log_changes(std::vector<KeyChange> const& taken, std::vector<KeyChange> const& later,
                 Program const& program);

// Refuses groups that the host lacks, and did not lack before. A group of a new configuration may
// be misspelt, and one that was there before may be missing only because a directory service is
// down: neither may take roles away.
[[nodiscard]] Result<void> lacks_no_group(std::vector<std::string> const& unknown,
                                          std::vector<std::string> const& unknown_before);

}  // namespace vfmgr
