// SPDX-License-Identifier: Apache-2.0
// What the routes of objects with a name of their own have in common. Pure.
#pragma once

#include <fmt/format.h>

#include "api/types/json_fwd.hpp"
#include "api/types/network.hpp"
#include "service/routes/page.hpp"

namespace vfmgr {

// Returns the entry of the path's {name}, or the refusal. `what` is one word: "network".
template <class Value>
[[nodiscard]] Result<Value const*> named(Call const& call, std::string_view what,
                                         std::map<std::string, Value> const& all) {
    auto const& name = call.ids.at("name");
    if (auto const found = all.find(name); found != all.end()) return &found->second;
    return fail(Problem::not_found, fmt::format("there is no {} {}", what, name),
                fmt::format("GET /v1/{}s lists those of this host", what));
}

// Answers with a page of those that `passes`, by name. `shown` is what a client sees of an entry.
template <class All, class Shown, class Passes>
[[nodiscard]] Result<http::Response> page_of_named(Call const& call, All const& all, Shown shown,
                                                   Passes passes) {
    return page_of_all(
        call, all, [](auto const& entry) { return entry.first; },
        [&](auto const& entry) {
            auto const& item = std::invoke(shown, entry.second);
            return passes(item) ? std::optional(item) : std::nullopt;
        });
}

// Checks the path's {name}, and returns it.
[[nodiscard]] inline Result<std::string> own_name(Call const& call, std::string_view what) {
    auto const& name = call.ids.at("name");
    if (can_be_a_networks(name)) return name;
    return fail(
        Problem::invalid_request,
        fmt::format("{} can't be the name of a {}: it {}", name, what, rule_of_network_names),
        "choose another name");
}

// Parses the body. The path names the object; a body that names it too, such as a GET's answer,
// names the same.
template <class Value>
[[nodiscard]] Result<Value> named_body(Call const& call, std::string_view what) {
    VFMGR_TRY(auto value, from_json_text<Value>(call.request.body));
    VFMGR_TRY(auto name, own_name(call, what));
    if (!value.name.empty() && value.name != name) {
        Error error{Problem::invalid_request,
                    fmt::format("the path names {} {}, but the body {}", what, name, value.name),
                    fmt::format("leave the name out of the body: a {} is not renamed", what)};
        error.violations.push_back({"/name", "is not the path's"});
        return fail(std::move(error));
    }
    value.name = std::move(name);
    return value;
}

[[nodiscard]] inline Result<http::Response> removed(Call const&, Snapshot const&) {
    return no_content();
}

}  // namespace vfmgr
