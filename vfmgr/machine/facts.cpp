// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/facts.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>

namespace vfmgr::checks {
namespace {

std::string_view without_newline(std::string_view text) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    return text;
}

}  // namespace

bool Unknown::absent() const {
    return error == ENOENT;
}

std::string to_string(Unknown const& unknown) {
    if (unknown.error == 0) return unknown.source + " was not collected";
    if (unknown.absent()) return "there is no " + unknown.source;
    return unknown.source + ": " + errno_name(unknown.error);
}

bool matches(std::string_view pattern, std::string_view path) {
    // fnmatch() is slow, and each missing fact is compared with hundreds of patterns, most of which
    // differ from it in their first or their last bytes.
    constexpr std::string_view special = "*?[]\\";
    std::size_t at = 0;
    while (at < pattern.size() && special.find(pattern[at]) == special.npos) {
        if (at == path.size() || path[at] != pattern[at]) return false;
        ++at;
    }
    if (at == pattern.size()) return path.size() == at;
    if (pattern == "*") return path.find('/') == path.npos;
    if (!path.ends_with(pattern.substr(pattern.find_last_of(special) + 1))) return false;
    return ::fnmatch(std::string(pattern).c_str(), std::string(path).c_str(), FNM_PATHNAME) == 0;
}

bool Facts::looked_up(std::string_view name) const {
    if (patterns.contains("*") || patterns.contains(name)) return true;
    // A path's pattern names its first folder: "/sys/" of "/sys/bus/…".
    auto const top = name.starts_with('/') ? name.substr(0, name.find('/', 1) + 1) : "";
    for (auto at = patterns.lower_bound(top); at != patterns.end() && at->starts_with(top); ++at)
        if (matches(*at, name)) return true;
    return false;
}

Unknown Facts::missing(std::string_view name) const {
    return {std::string(name), looked_up(name) ? ENOENT : 0};
}

template <class Map>
Known<typename Map::mapped_type const*> Facts::found(Map const& map, std::string_view name) const {
    auto const at = map.find(name);
    if (at == map.end()) return tl::unexpected(missing(name));
    if (at->second.error != 0) return tl::unexpected(Unknown{at->first, at->second.error});
    return &at->second;
}

Known<std::string_view> Facts::text(std::string_view path) const {
    return found(files, path).map([](Fact const* fact) { return without_newline(fact->bytes); });
}

Known<std::string_view> Facts::target(std::string_view path) const {
    return found(links, path).map([](Fact const* fact) { return std::string_view(fact->bytes); });
}

Known<Names> Facts::names(std::string_view path) const {
    auto const fact = found(folders, path);
    if (fact) return Names((*fact)->names);
    if (fact.error().absent()) return Names();
    return tl::unexpected(fact.error());
}

Known<CommandFact const*> Facts::command(std::string_view line) const {
    return found(commands, line);
}

Known<Names> Facts::answers(std::string_view request) const {
    return found(netlink, request).map([](NetlinkFact const* fact) {
        return Names(fact->payloads);
    });
}

}  // namespace vfmgr::checks
