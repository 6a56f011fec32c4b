// SPDX-License-Identifier: Apache-2.0
// Tables of routes whose paths hold ids: the guest plane's and a served responder's. Pure; any
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

// What may stand in a path: [A-Za-z0-9-], 1 to 64 of them.
[[nodiscard]] bool is_path_id(std::string_view text);
// The ids in the places of "{}" in `pattern`: "/guest/v1/sessions/{}/report". nullopt: another
// path.
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

// `otherwise`: the refusal of a path that no pattern has.
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
