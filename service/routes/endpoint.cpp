// SPDX-License-Identifier: Apache-2.0
#include "service/routes/endpoint.hpp"

#include <algorithm>
#include <set>

namespace vfmgr {
namespace {

constexpr std::string_view rest_mark = "...}";

// Takes the first segment, and the '/' before it, from a path.
std::string_view take_segment(std::string_view& path) {
    auto const end = std::min(path.find('/', 1), path.size());
    auto const segment = path.substr(1, end - 1);
    path.remove_prefix(end);
    return segment;
}

std::vector<std::string_view> segments(std::string_view path) {
    std::vector<std::string_view> parts;
    while (!path.empty()) parts.push_back(take_segment(path));
    return parts;
}

// "rest" of "{rest...}".
std::string_view name_of_rest(std::string_view segment) {
    return segment.substr(1, segment.size() - 1 - rest_mark.size());
}

bool is_rest(std::string_view segment) {
    return segment.starts_with('{') && segment.ends_with(rest_mark);
}

// Every request is compared with every endpoint, so this allocates nothing, and most end here
// early.
bool matches(std::string_view pattern, std::string_view path) {
    if (!path.starts_with(pattern.substr(0, pattern.find('{')))) return false;
    while (!pattern.empty() && !path.empty()) {
        auto const desired = take_segment(pattern);
        if (is_rest(desired)) return path != "/";
        auto const given = take_segment(path);
        if (!desired.starts_with('{') && desired != given) return false;
    }
    return pattern.empty() && path.empty();
}

// Returns the ids in a path that matches the pattern.
std::map<std::string, std::string> ids_in(std::string_view pattern, std::string_view path) {
    std::map<std::string, std::string> ids;
    while (!pattern.empty()) {
        auto const name = take_segment(pattern);
        if (is_rest(name)) {
            ids[std::string(name_of_rest(name))] = path.substr(1);
            return ids;
        }
        auto const given = take_segment(path);
        if (name.starts_with('{')) ids[std::string(name.substr(1, name.size() - 2))] = given;
    }
    return ids;
}

}  // namespace

Found find_endpoint(std::vector<Endpoint> const& endpoints, http::Request const& request) {
    Found found;
    std::string_view pattern;
    for (auto const& endpoint : endpoints) {
        if (!matches(endpoint.path, request.path)) continue;
        if (pattern.empty()) pattern = endpoint.path;
        if (endpoint.path != pattern) continue;
        found.allowed.push_back(endpoint.method);
        bool const any = endpoint.passed_on && endpoint.method.empty();
        if (!any && endpoint.method != request.method) continue;
        found.endpoint = &endpoint;
        found.ids = ids_in(endpoint.path, request.path);
    }
    return found;
}

std::string noun_of(std::string_view path) {
    auto const parts = segments(path);
    auto const at = parts.front() == "v1" ? 1U : 0U;
    if (parts.size() == at || parts[at].starts_with('{')) return {};
    for (auto const* const open : {"livez", "readyz", "openapi.json", "problems", "sessions"})
        if (parts[at] == open) return {};
    return std::string(parts[at]);
}

// What is passed on to /v1/hosts/{host}/{rest...} for /v1/hosts/h1/pfs is of the noun "pfs".
std::string noun_asked_for(Endpoint const& endpoint,
                           std::map<std::string, std::string> const& ids) {
    if (!endpoint.passed_on) return noun_of(endpoint.path);
    auto const rest = segments(endpoint.path).back();
    return noun_of("/v1/" + ids.at(std::string(name_of_rest(rest))));
}

std::vector<std::string> nouns_of(std::vector<Endpoint> const& endpoints) {
    std::set<std::string> nouns;
    for (auto const& endpoint : endpoints) nouns.insert(noun_of(endpoint.path));
    nouns.erase("");
    return {nouns.begin(), nouns.end()};
}

}  // namespace vfmgr
