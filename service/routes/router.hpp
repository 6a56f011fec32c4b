// SPDX-License-Identifier: Apache-2.0
// One table of routes: method, path, role, handler. Denies by default. Runs on the io thread:
// nothing here blocks. Handlers parse, and return a query or a command; only the router runs
// queries, submits commands and responds.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/addresses.hpp"
#include "service/auth/authenticate.hpp"
#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

struct Call {
    http::Request request;
    Principal who;
    std::map<std::string, std::string> ids;  // {pci} and the like, from the path
    bool stranger = false;                   // has no role, at a route that is open to anyone
};

// Answers from what is published, or with a query's answer.
using Ask = std::function<Result<Query<http::Response>>(Call const&, Snapshot const&)>;
// Parses a command. The router adds the call's Intent, submits it, and answers: 202 with the
// operation, 200 with the plan of a dry run, or with `nothing` if there was nothing to do.
struct Change {
    Command command;
    std::function<Result<http::Response>(Call const&, Snapshot const&)> nothing;
};
using Write = std::function<Result<Query<Change>>(Call const&)>;
// Answers from what is published and from nothing else: of the call it gets the method, the path
// with its ids and the query. So its answer is made once for each published view and target.
struct Published {
    std::function<Result<http::Response>(Call const&, Snapshot const&)> answer;
};

inline constexpr std::optional<Role> anyone{};

// Who calls a route, besides principals of no tenant. A new route is not for tenants until somebody
// has decided what of it they may see. The handler of one that is gets the tenant's view of what is
// published, and names the tenant to the engine's queries. refused: at a route that is open to
// anyone, those too whose token or certificate is refused.
enum class Audience { no_tenants, tenants, refused };
inline constexpr auto for_tenants_too = Audience::tenants;
inline constexpr auto for_refused_too = Audience::refused;

struct Route {
    std::string method;
    std::string path;          // "/v1/pfs/{pci}/vfs/{index}"; a request is for the first that fits
    std::optional<Role> role;  // anyone: needs no token either
    std::variant<Ask, Write, Published> handle;
    std::vector<std::string> query{};  // the parameters that it reads; others are refused
    Audience audience = Audience::no_tenants;
};

// Authenticates, limits rates, and reports each answer.
struct Gate {
    using Answered = std::function<void(Call const&, http::Response const&)>;
    // Takes a token of `who`. Returns zero, or how long to hold back the refusal.
    using Take = std::function<std::chrono::milliseconds(std::string const& who)>;

    std::function<Result<Principal>(http::Request const&)> authenticate;
    // Whether a caller that was authenticated before still is, with as high a role.
    std::function<bool(Principal const&, http::Peer const&)> still_holds;
    // Fails for what another site's page may have made a browser send. Empty: nothing may be.
    std::function<Result<void>(http::Request const&)> refuse_other_sites{};
    Take take_change;   // by principal: requests that may change something, or are denied
    Take take_failure;  // by stranger_name(): requests that fail to authenticate; by principal:
                        // those of other sites' pages
    Take take_visit;    // by stranger_name(): requests at routes that are open to anyone
    // Called with the answer of every request that may change something, is denied, or is of
    // another site's page.
    Answered answered;
    // Called with the answer of every request that fails to authenticate, and of strangers that
    // come too often or from another site's page.
    Answered unknown;
    // Called with every answer. `route`, one of the router's own, is null where none has the
    // request's path and method.
    std::function<void(Route const* route, http::Request const&, http::Response const&)> every{};
};

// The noun that a route's path begins with, which a token's scopes name: "pfs" of "/v1/pfs/{pci}".
// Empty for those that every token may use: GET /v1, its documents, sessions, /livez, /readyz,
// the console.
[[nodiscard]] std::string noun_of(std::string_view path);
// Sorted, each once.
[[nodiscard]] std::vector<std::string> nouns_of(std::vector<Route> const& routes);

// `engine` outlives the handler.
[[nodiscard]] http::Handler router(Engine& engine, std::vector<Route> routes, Gate gate);
// Answers a call that the gate has let pass.
void handle(Engine& engine, Route const& route, Call const& call, http::Respond respond);
// Names a peer that has not authenticated: "address:10.0.0.9", "uid:1000", "cid:3"; "cert:<name>"
// if its certificate was verified but has no role.
[[nodiscard]] std::string stranger_name(http::Peer const& peer);

// Who asks for the call, and whether its connection is still there.
[[nodiscard]] Client client_of(Call const& call);

// --- what handlers parse and answer with ---------------------------------------------------

using http::json_response;
// Returns the call's X-Request-Id, which the transport assigns if the client sent none.
[[nodiscard]] std::string request_id(Call const& call);
// Returns the problem of `error` for this call.
[[nodiscard]] http::Response refusal(Call const& call, Error const& error);
[[nodiscard]] http::Response no_content();
// Adds the ETag of that revision.
[[nodiscard]] http::Response with_etag(http::Response response, std::uint64_t revision);
[[nodiscard]] Result<PciAddress> pf_id(Call const& call);
[[nodiscard]] Result<std::uint16_t> vf_index(Call const& call);
// Answers a dry run that has no steps on the host. `notes` are sentences about what would happen.
[[nodiscard]] http::Response dry_run_response(std::vector<std::string> notes);
// Reads ?name=true; refuses any value except true and false.
[[nodiscard]] Result<bool> is_true(Call const& call, std::string const& name);
struct Bounds {
    std::uint32_t least = 0;
    std::uint32_t most = 0;
    std::uint32_t absent = 0;  // the value when the parameter is absent
};
// Reads a whole number such as ?wait=30, within the bounds of the API's document.
[[nodiscard]] Result<std::uint32_t> whole_number(Call const& call, std::string const& name,
                                                 Bounds const& bounds);

}  // namespace vfmgr
