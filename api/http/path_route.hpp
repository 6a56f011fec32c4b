// SPDX-License-Identifier: Apache-2.0
// Tables of routes whose paths hold ids, for the guest plane and a served responder. Pure; any
// thread.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/problem.hpp"

namespace vfmgr::http {

// Accepts an id in a path: 1 to 64 of [A-Za-z0-9-].
[[nodiscard]] bool is_path_id(std::string_view text);
// Returns the ids at the "{}" places of `pattern`, e.g. "/guest/v1/sessions/{}/report". Returns
// nullopt if `path` does not match.
[[nodiscard]] std::optional<std::vector<std::string>> ids_in_path(std::string_view pattern,
                                                                  std::string_view path);

template <class To>
struct PathRoute {
    To to;
    std::string_view method;
    std::string_view pattern;
};

template <class To>
struct FoundRoute {
    To to;
    std::vector<std::string> ids;
};

// Fails with the error `otherwise` if `path` matches no pattern.
template <class To>
[[nodiscard]] Result<FoundRoute<To>> find_route(std::span<PathRoute<To> const> routes,
                                                std::string_view method, std::string_view path,
                                                Error otherwise) {
    std::string_view allowed;
    for (auto const& route : routes) {
        auto ids = ids_in_path(route.pattern, path);
        if (!ids) continue;
        if (route.method == method) return FoundRoute<To>{route.to, std::move(*ids)};
        allowed = route.method;
    }
    if (allowed.empty()) return fail(std::move(otherwise));
    return fail(Problem::method_not_allowed, fmt::format("this path takes {} only", allowed),
                "use that method");
}

}  // namespace vfmgr::http
