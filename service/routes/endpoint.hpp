// SPDX-License-Identifier: Apache-2.0
// The endpoints of an API, and which of them a request is for. Values and pure functions; any
// thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/daemon.hpp"

namespace vfmgr {

inline constexpr std::optional<Role> anyone{};

// Who calls a route, besides principals of no tenant. A new route is not for tenants until somebody
// has decided what of it they may see. The handler of one that is gets the tenant's view of what is
// published, and names the tenant to the engine's queries. refused: at a route that is open to
// anyone, those too whose token or certificate is refused.
enum class Audience { no_tenants, tenants, refused };
inline constexpr auto for_tenants_too = Audience::tenants;
inline constexpr auto for_refused_too = Audience::refused;

// Requests of one method and path, and who may send them.
struct Endpoint {
    std::string method;  // of one that is passed on: empty, any
    // "/v1/pfs/{pci}/vfs/{index}"; a request is for the first that fits. A last "{rest...}" fits
    // one segment or more.
    std::string path;
    std::optional<Role> role;          // anyone: needs no token either
    std::vector<std::string> query{};  // the parameters that it reads; others are refused
    Audience audience = Audience::no_tenants;
    // Another server answers, and judges query, media and conditions. A token's scopes name the
    // noun that {rest...} begins with.
    bool passed_on = false;
};

struct Found {
    Endpoint const* endpoint = nullptr;        // of those that find_endpoint() got
    std::map<std::string, std::string> ids{};  // {pci} and the like, from the path
    std::vector<std::string> allowed{};        // methods of endpoints on the same path
};
[[nodiscard]] Found find_endpoint(std::vector<Endpoint> const& endpoints,
                                  http::Request const& request);

// The noun that an endpoint's path begins with, which a token's scopes name: "pfs" of
// "/v1/pfs/{pci}". Empty for those that every token may use: GET /v1, its documents, sessions,
// /livez, /readyz, the console.
[[nodiscard]] std::string noun_of(std::string_view path);
// The same of what a request asks for: another server's noun if it is passed on there.
[[nodiscard]] std::string noun_asked_for(Endpoint const& endpoint,
                                         std::map<std::string, std::string> const& ids);
// Sorted, each once.
[[nodiscard]] std::vector<std::string> nouns_of(std::vector<Endpoint> const& endpoints);

}  // namespace vfmgr
