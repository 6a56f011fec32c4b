// SPDX-License-Identifier: Apache-2.0
// The front of an API, which vfmgrd and vfmgr-fleetd share: finds the endpoint that a request is
// for, authenticates the caller, limits rates, and refuses. Denies by default. What passes is
// answered by the program. Runs on the io thread: nothing here blocks.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/addresses.hpp"
#include "service/auth/authenticate.hpp"
#include "service/auth/fleet_call.hpp"
#include "service/program.hpp"
#include "service/routes/endpoint.hpp"

namespace vfmgr {

struct Call {
    http::Request request;
    Principal who;
    std::map<std::string, std::string> ids;  // {pci} and the like, from the path
    bool stranger = false;                   // has no role, at a route that is open to anyone
    std::optional<std::uint64_t> fence{};    // of the fleet's scheduler whose request it is
};

// Authenticates, limits rates, and reports each answer.
struct Gate {
    using Answered = std::function<void(Call const&, http::Response const&)>;
    // Takes a token of `who`. Returns zero, or how long to hold back the refusal.
    using Take = std::function<std::chrono::milliseconds(std::string const& who)>;
    using TakeOf = std::function<std::chrono::milliseconds(Principal const& who)>;

    std::function<Result<Principal>(http::Request const&)> authenticate;
    // Whether a caller that was authenticated before still is, with as high a role.
    std::function<bool(Principal const&, http::Peer const&)> still_holds;
    // Fails for what another site's page may have made a browser send. Empty: nothing may be.
    std::function<Result<void>(http::Request const&)> refuse_other_sites{};
    // Says whose request it is, of one that a replica of the fleet passes on. Empty: nobody does.
    std::function<Result<FleetCall>(Principal const&, http::Request const&)> speak_for{};
    TakeOf take_change;  // requests that may change something, or are denied
    Take take_failure;   // by stranger_name(): requests that fail to authenticate; by principal:
                         // those of other sites' pages
    Take take_visit;     // by stranger_name(): requests at routes that are open to anyone
    // Called with the answer of every request that may change something, whoever sent it, is
    // denied, or is of another site's page.
    Answered answered;
    // Called with the answer of every request that fails to authenticate, and of strangers that
    // come too often or from another site's page.
    Answered unknown;
    // Called with every answer. `endpoint`, one of the dispatcher's own, is null where none has the
    // request's path and method.
    std::function<void(Endpoint const* endpoint, http::Request const&, http::Response const&)>
        every{};
    Program program{};
};

// Answers a call that the gate has let pass: at once or later, on any thread. `endpoint` is its
// place in the list. The call lives until `respond` was called and its copies are gone.
using AnswerCall =
    std::function<void(std::size_t endpoint, Call const&, http::Respond const& respond)>;
[[nodiscard]] http::Handler dispatcher(std::vector<Endpoint> endpoints, Gate gate,
                                       AnswerCall answer);

// Names a peer that has not authenticated: "address:10.0.0.9", "uid:1000", "cid:3"; "cert:<name>"
// if its certificate was verified but has no role.
[[nodiscard]] std::string stranger_name(http::Peer const& peer);

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
