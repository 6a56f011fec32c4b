// SPDX-License-Identifier: Apache-2.0
#include "service/routes/dispatch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "service/routes/conditions.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

Error no_route(http::Request const& request, std::vector<std::string> const& allowed) {
    if (allowed.empty())
        return {Problem::not_found, fmt::format("there is no {}", request.path),
                "GET /v1 lists the paths of this API"};
    return {Problem::method_not_allowed,
            fmt::format("{} does not support {}", request.path, request.method),
            "use one of the methods in the Allow header"};
}

template <class Number>
std::optional<Number> whole(std::string_view text) {
    auto const number = parse_digits(text, {.max = std::numeric_limits<Number>::max()});
    if (!number) return std::nullopt;
    return static_cast<Number>(*number);
}

http::Response too_many(Call const& call, std::chrono::milliseconds hold, std::string remedy) {
    auto response = http::problem_response_as(
        429,
        {Problem::limit_exceeded, fmt::format("{} sends too many requests", call.who.name),
         std::move(remedy)},
        call.request.path, request_id(call));
    response.hold = hold;
    return response;
}

std::string wait_or_raise(Program const& program, Principal const& who) {
    return fmt::format(
        "wait for the time in Retry-After; limits.{}changes_per_second in {} sets "
        "the rate",
        is_replica_itself(who) ? "fleet_" : "", program.settings);
}

constexpr auto wait = "wait for the time in Retry-After";

void refuse_stranger(Gate const& gate, Call& call, Error const& why, http::Respond const& respond) {
    call.who.name = stranger_name(call.request.peer);
    auto const hold = gate.take_failure(call.who.name);
    auto response = hold.count() ? too_many(call, hold, wait) : refusal(call, why);
    gate.unknown(call, response);
    respond(std::move(response));
}

Error needs_role(Call const& call, Role role) {
    return {Problem::forbidden,
            fmt::format("{} has role {}, but this request needs role {}", call.who.name,
                        enum_name(call.who.role), enum_name(role)),
            "ask an admin for that role"};
}

Error needs_scope(Call const& call, std::string const& noun) {
    return {Problem::forbidden,
            fmt::format("{} has the scopes {}, but this request needs scope {}", call.who.name,
                        fmt::join(*call.who.scopes, ", "), noun),
            "use a token that has it, or one without scopes; an admin creates them"};
}

Error not_for_tenants(Call const& call) {
    return {Problem::forbidden,
            fmt::format("{} is of tenant {}, and {} {} is not for tenants", call.who.name,
                        call.who.tenant->tenant.name, call.request.method, call.request.path),
            "ask an admin; the API's description marks what is for tenants"};
}

std::optional<Error> denial(Call const& call, Endpoint const& endpoint) {
    bool const open = !endpoint.role || endpoint.audience == Audience::tenants;
    if (auto const fleets = open_to_fleet(call.who, endpoint.method, endpoint.path); !fleets)
        return fleets.error();
    if (call.who.tenant && !open) return not_for_tenants(call);
    if (endpoint.role && call.who.role < *endpoint.role) return needs_role(call, *endpoint.role);
    auto const noun = noun_asked_for(endpoint, call.ids);
    auto const& scopes = call.who.scopes;
    if (!scopes || noun.empty() || std::ranges::find(*scopes, noun) != scopes->end())
        return std::nullopt;
    return needs_scope(call, noun);
}

Result<void> enter(Gate const& gate, Call const& call) {
    auto const holds = [still_holds = gate.still_holds, who = call.who, peer = call.request.peer] {
        return still_holds(who, peer);
    };
    return http::make_known(call.request, {call.who.name, holds});
}

struct Table {
    std::vector<Endpoint> endpoints;
    Gate gate;
    AnswerCall answer;
};

// A stranger who shows something to authenticate by, and fails, is refused everywhere but where a
// person goes to sign in: a browser shows the certificate that it has.
bool welcomes(Endpoint const* endpoint, http::Request const& request) {
    auto const* const remote = std::get_if<http::TcpPeer>(&request.peer);
    bool const shows = request.headers.contains("authorization") || (remote && remote->certificate);
    return endpoint && !endpoint->role && (!shows || endpoint->audience == Audience::refused);
}

// What it says besides its body. Another server judges what is passed on to it.
std::optional<http::Response> refuse_form(Endpoint const& endpoint, Call const& call) {
    if (endpoint.passed_on) return std::nullopt;
    if (auto const known = http::check_query(call.request, endpoint.query); !known)
        return refusal(call, known.error());
    if (auto other = http::refuse_other_media(call.request)) return other;
    if (auto const read = refuse_if_none_match(call); !read) return refusal(call, read.error());
    return std::nullopt;
}

// The answer to a call that may go on: it has passed the gate, or is a stranger's where anyone may
// come.
void answer_call(Table const& table, Endpoint const& endpoint, Call const& call,
                 http::Respond const& respond) {
    if (auto refused = refuse_form(endpoint, call)) return respond(std::move(*refused));
    try {
        auto const place = &endpoint - table.endpoints.data();
        table.answer(static_cast<std::size_t>(place), call, respond);
    } catch (std::exception const& bug) {
        respond(refusal(call, Error{Problem::internal, bug.what(), "report this as a bug"}));
    }
}

// Makes the call that of whoever it is for. Returns why that can't be.
std::optional<Error> speak(Gate const& gate, Call& call) {
    if (!gate.speak_for) return std::nullopt;
    auto spoken = gate.speak_for(call.who, call.request);
    if (!spoken) return spoken.error();
    call.who = std::move(spoken->who);
    call.fence = spoken->fence;
    return std::nullopt;
}

// `respond` reports a change of theirs.
void answer_stranger(Table const& table, Endpoint const& endpoint, Call& call,
                     http::Respond const& respond, http::Respond const& answer) {
    auto const hold = table.gate.take_visit(call.who.name);
    if (!hold.count()) return answer_call(table, endpoint, call, answer);
    auto response = too_many(call, hold, wait);
    table.gate.unknown(call, response);
    respond(std::move(response));
}

http::Response no_such_route(Call const& call, std::vector<std::string> allowed) {
    auto response = refusal(call, no_route(call.request, allowed));
    if (std::ranges::find(allowed, "GET") != allowed.end()) allowed.emplace_back("HEAD");
    if (!allowed.empty()) response.headers["Allow"] = fmt::format("{}", fmt::join(allowed, ", "));
    return response;
}

// The page's requests don't use up what the person may change, who is signed in beside it.
void refuse_site(Gate const& gate, Call const& call, Error const& why,
                 http::Respond const& respond) {
    auto const hold = gate.take_failure(call.who.name);
    auto response = hold.count() ? too_many(call, hold, wait) : refusal(call, why);
    gate.answered(call, response);
    respond(std::move(response));
}

// Reports the answer of a request that counts. `call` and `table` live as long as the answer is
// outstanding.
http::Respond reporting(std::shared_ptr<Table const> const& table,
                        std::shared_ptr<Call const> const& call, http::Respond const& respond) {
    return [table, call, respond](http::Response response) {
        table->gate.answered(*call, response);
        respond(std::move(response));
    };
}

void answer_known(std::shared_ptr<Table const> const& table, Found found,
                  std::shared_ptr<Call> const& call, http::Respond const& respond) {
    auto const& gate = table->gate;
    auto const* const endpoint = found.endpoint;
    if (auto const place = enter(gate, *call); !place)
        return respond(refusal(*call, place.error()));
    auto denied = speak(gate, *call);
    if (!denied && endpoint) denied = denial(*call, *endpoint);
    bool const counts = denied || call->request.method != "GET";
    auto const answer = counts ? reporting(table, call, respond) : respond;
    if (counts)
        if (auto const hold = gate.take_change(call->who); hold.count())
            return answer(too_many(*call, hold, wait_or_raise(gate.program, call->who)));
    if (!endpoint) return answer(no_such_route(*call, std::move(found.allowed)));
    if (denied) return answer(refusal(*call, *denied));
    answer_call(*table, *endpoint, *call, answer);
}

void dispatch(std::shared_ptr<Table const> const& table, http::Request request,
              http::Respond const& caller) {
    auto const& gate = table->gate;
    auto found = find_endpoint(table->endpoints, request);
    auto who = gate.authenticate(request);
    auto const call = std::make_shared<Call>(Call{std::move(request), {}, std::move(found.ids)});
    auto const* const endpoint = found.endpoint;
    auto const respond = [call, table, endpoint, caller](http::Response response) {
        if (table->gate.every) table->gate.every(endpoint, call->request, response);
        caller(std::move(response));
    };
    if (auto const own =
            gate.refuse_other_sites ? gate.refuse_other_sites(call->request) : Result<void>();
        !own) {
        if (!who) return refuse_stranger(gate, *call, own.error(), respond);
        call->who = *who;
        return refuse_site(gate, *call, own.error(), respond);
    }
    if (!who && welcomes(endpoint, call->request)) {
        call->stranger = true;
        call->who.name = stranger_name(call->request.peer);
        bool const counts = call->request.method != "GET";
        return answer_stranger(*table, *endpoint, *call, respond,
                               counts ? reporting(table, call, respond) : respond);
    }
    if (!who) return refuse_stranger(gate, *call, who.error(), respond);
    call->who = *who;
    answer_known(table, std::move(found), call, respond);
}

}  // namespace

http::Handler dispatcher(std::vector<Endpoint> endpoints, Gate gate, AnswerCall answer) {
    auto const table = std::make_shared<Table const>(
        Table{std::move(endpoints), std::move(gate), std::move(answer)});
    return [table](http::Request request, http::Respond const& respond) {
        dispatch(table, std::move(request), respond);
    };
}

std::string stranger_name(http::Peer const& peer) {
    if (auto const* local = std::get_if<http::UnixPeer>(&peer))
        return fmt::format("uid:{}", local->uid);
    if (auto const* guest = std::get_if<http::VsockPeer>(&peer))
        return fmt::format("cid:{}", guest->cid);
    auto const& remote = std::get<http::TcpPeer>(peer);
    bool const named = remote.certificate && !remote.certificate->names.empty();
    return named ? "cert:" + remote.certificate->names.front() : "address:" + remote.address;
}

std::string request_id(Call const& call) {
    auto const id = call.request.headers.find("x-request-id");
    return id == call.request.headers.end() ? std::string() : id->second;
}

http::Response refusal(Call const& call, Error const& error) {
    return http::problem_response(error, call.request);
}

http::Response dry_run_response(std::vector<std::string> notes) {
    return json_response(200, {{"plan", Plan{{}, {}, std::move(notes)}}});
}

http::Response no_content() {
    http::Response response;
    response.status = 204;
    return response;
}

http::Response with_etag(http::Response response, std::uint64_t revision) {
    response.headers["ETag"] = fmt::format("\"{}\"", revision);
    return response;
}

Result<PciAddress> pf_id(Call const& call) {
    return PciAddress::parse(call.ids.at("pci"));
}

Result<std::uint16_t> vf_index(Call const& call) {
    if (auto const index = whole<std::uint16_t>(call.ids.at("index"))) return *index;
    return fail(Problem::invalid_request,
                fmt::format("{} is not a VF number", call.ids.at("index")),
                "write it as in /v1/pfs/0000:3b:00.0/vfs/2");
}

Result<bool> is_true(Call const& call, std::string const& name) {
    auto const it = call.request.query.find(name);
    if (it == call.request.query.end() || it->second == "false") return false;
    if (it->second == "true") return true;
    return fail(Problem::invalid_request,
                fmt::format("{} is true or false, not {}", name, it->second),
                fmt::format("use ?{}=true", name));
}

Result<std::uint32_t> whole_number(Call const& call, std::string const& name,
                                   Bounds const& bounds) {
    auto const it = call.request.query.find(name);
    if (it == call.request.query.end()) return bounds.absent;
    auto const number = whole<std::uint32_t>(it->second);
    if (number && *number >= bounds.least && *number <= bounds.most) return *number;
    return fail(Problem::invalid_request,
                fmt::format("{} must be a whole number from {} to {}, not {}", name, bounds.least,
                            bounds.most, quoted(it->second)),
                fmt::format("use a number such as ?{}={}", name, bounds.most));
}

}  // namespace vfmgr
