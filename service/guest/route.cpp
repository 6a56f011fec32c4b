// SPDX-License-Identifier: Apache-2.0
#include "service/guest/route.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace vfmgr {
namespace {

constexpr std::size_t id_length_max = 64;

struct Pattern {
    GuestRoute::To to;
    std::string_view method;
    std::string_view before;  // the id
    std::string_view after;
    bool has_id;
};

constexpr std::string_view streams = "/streams/";

constexpr std::array<Pattern, 6> patterns{{
    {GuestRoute::To::config, "GET", "/guest/v1/config", "", false},
    {GuestRoute::To::start_run, "POST", "/guest/v1/attachments/", "/runs", true},
    {GuestRoute::To::open_session, "POST", "/guest/v1/sessions", "", false},
    {GuestRoute::To::open_stream, "POST", "/guest/v1/sessions/", "/streams", true},
    {GuestRoute::To::report, "PUT", "/guest/v1/sessions/", "/report", true},
    {GuestRoute::To::run_error, "PUT", "/guest/v1/runs/", "/error", true},
}};

bool is_id(std::string_view text) {
    auto const allowed = [](char ch) {
        return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
               ch == '-';
    };
    return !text.empty() && text.size() <= id_length_max && std::ranges::all_of(text, allowed);
}

bool matches(Pattern const& pattern, std::string_view path, std::string_view& id) {
    if (!pattern.has_id) return path == pattern.before;
    auto const fixed = pattern.before.size() + pattern.after.size();
    if (path.size() <= fixed || !path.starts_with(pattern.before) || !path.ends_with(pattern.after))
        return false;
    id = path.substr(pattern.before.size(), path.size() - fixed);
    return is_id(id);
}

// The one path with two ids.
std::optional<GuestRoute> stream_route(std::string_view path) {
    constexpr std::string_view before = "/guest/v1/sessions/";
    auto const at = path.find(streams);
    if (!path.starts_with(before) || at == std::string_view::npos || at < before.size())
        return std::nullopt;
    auto const session = path.substr(before.size(), at - before.size());
    auto const stream = path.substr(at + streams.size());
    if (!is_id(session) || !is_id(stream)) return std::nullopt;
    return GuestRoute{GuestRoute::To::close_stream, std::string(session), std::string(stream)};
}

}  // namespace

Result<GuestRoute> guest_route(std::string_view method, std::string_view path) {
    std::string_view allowed;
    for (auto const& pattern : patterns) {
        std::string_view id;
        if (!matches(pattern, path, id)) continue;
        if (pattern.method == method) return GuestRoute{pattern.to, std::string(id), {}};
        allowed = pattern.method;
    }
    if (auto route = stream_route(path)) {
        if (method == "DELETE") return std::move(*route);
        allowed = "DELETE";
    }
    if (!allowed.empty())
        return fail(Problem::method_not_allowed, fmt::format("this path takes {} only", allowed),
                    "use that method");
    return fail(Problem::not_found, "the guest plane has no such path",
                "use the vf-guest of the host's version");
}

}  // namespace vfmgr
