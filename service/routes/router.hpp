// SPDX-License-Identifier: Apache-2.0
// One table of vfmgrd's routes: method, path, role, handler. Runs on the io thread: nothing here
// blocks. Handlers parse, and return a query or a command; only the router runs queries, submits
// commands and responds.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "service/routes/dispatch.hpp"
#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

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

struct Route {
    std::string method;
    std::string path;          // "/v1/pfs/{pci}/vfs/{index}"; a request is for the first that fits
    std::optional<Role> role;  // anyone: needs no token either
    std::variant<Ask, Write, Published> handle;
    std::vector<std::string> query{};  // the parameters that it reads; others are refused
    Audience audience = Audience::no_tenants;
};

// Sorted, each once.
[[nodiscard]] std::vector<std::string> nouns_of(std::vector<Route> const& routes);

// `engine` outlives the handler.
// `resume` runs work on the io thread; empty: at once.
using Resume = std::function<void(std::function<void()>)>;
[[nodiscard]] http::Handler router(Engine& engine, std::vector<Route> routes, Gate gate,
                                   Resume const& resume = {});
// Answers a call that the gate has let pass.
void handle(Engine& engine, Route const& route, Call const& call, http::Respond respond);

// Who asks for the call, and whether its connection is still there.
[[nodiscard]] Client client_of(Call const& call);

}  // namespace vfmgr
