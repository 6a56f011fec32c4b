// SPDX-License-Identifier: Apache-2.0
#include "service/routes/router.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "service/routes/conditions.hpp"
#include "service/routes/kept_answers.hpp"

namespace vfmgr {
namespace {

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

// Every request is compared with every route, so this allocates nothing, and most end here early.
bool matches(std::string_view pattern, std::string_view path) {
    if (!path.starts_with(pattern.substr(0, pattern.find('{')))) return false;
    while (!pattern.empty() && !path.empty()) {
        auto const desired = take_segment(pattern);
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
        auto const given = take_segment(path);
        if (name.starts_with('{')) ids[std::string(name.substr(1, name.size() - 2))] = given;
    }
    return ids;
}

struct Found {
    Route const* route = nullptr;
    std::map<std::string, std::string> ids;
    std::vector<std::string> allowed;  // methods of routes on the same path
};

Found find(std::vector<Route> const& routes, http::Request const& request) {
    Found found;
    std::string_view pattern;
    for (auto const& route : routes) {
        if (!matches(route.path, request.path)) continue;
        if (found.allowed.empty()) pattern = route.path;
        if (route.path != pattern) continue;
        found.allowed.push_back(route.method);
        if (route.method != request.method) continue;
        found.route = &route;
        found.ids = ids_in(route.path, request.path);
    }
    return found;
}

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

http::Response too_many(Call const& call, std::chrono::milliseconds hold, char const* remedy) {
    auto response = http::problem_response_as(
        429,
        {Problem::limit_exceeded, fmt::format("{} sends too many requests", call.who.name), remedy},
        call.request.path, request_id(call));
    response.hold = hold;
    return response;
}

constexpr auto wait_or_raise =
    "wait for the time in Retry-After; limits.changes_per_second in /etc/vfmgr/vfmgr.toml sets the "
    "rate";
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
            "ask an admin of this host for that role"};
}

Error needs_scope(Call const& call, std::string const& noun) {
    return {Problem::forbidden,
            fmt::format("{} has the scopes {}, but this request needs scope {}", call.who.name,
                        fmt::join(*call.who.scopes, ", "), noun),
            "use a token that has it, or one without scopes; an admin of this host creates them"};
}

Error not_for_tenants(Call const& call) {
    return {Problem::forbidden,
            fmt::format("{} is of tenant {}, and {} {} is not for tenants", call.who.name,
                        call.who.tenant->tenant.name, call.request.method, call.request.path),
            "ask an admin of this host; the API's description marks what is for tenants"};
}

std::optional<Error> denial(Call const& call, Route const& route) {
    bool const open = !route.role || route.audience == Audience::tenants;
    if (call.who.tenant && !open) return not_for_tenants(call);
    if (route.role && call.who.role < *route.role) return needs_role(call, *route.role);
    auto const noun = noun_of(route.path);
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
    Engine& engine;
    std::vector<Route> routes;
    Gate gate;
    std::shared_ptr<KeptAnswers> kept = std::make_shared<KeptAnswers>();
};

// A stranger who shows something to authenticate by, and fails, is refused everywhere but where a
// person goes to sign in: a browser shows the certificate that it has.
bool welcomes(Route const* route, http::Request const& request) {
    auto const* const remote = std::get_if<http::TcpPeer>(&request.peer);
    bool const shows = request.headers.contains("authorization") || (remote && remote->certificate);
    return route && !route->role && (!shows || route->audience == Audience::refused);
}

// The answer to a call that may go on: it has passed the gate, or is a stranger's where anyone may
// come.
void answer_call(Table const& table, Route const& route, Call const& call,
                 http::Respond const& answer) {
    if (auto const known = http::check_query(call.request, route.query); !known)
        return answer(refusal(call, known.error()));
    if (auto other = http::refuse_other_media(call.request)) return answer(std::move(*other));
    if (auto const read = refuse_if_none_match(call); !read)
        return answer(refusal(call, read.error()));
    try {
        if (auto const* const published = std::get_if<Published>(&route.handle))
            return answer(table.kept->answer(*published, call, table.engine.snapshot()));
        handle(table.engine, route, call, answer);
    } catch (std::exception const& bug) {
        answer(refusal(call, Error{Problem::internal, bug.what(), "report this as a bug"}));
    }
}

void answer_stranger(Table const& table, Route const& route, Call& call,
                     http::Respond const& respond) {
    call.stranger = true;
    call.who.name = stranger_name(call.request.peer);
    auto const hold = table.gate.take_visit(call.who.name);
    if (!hold.count()) return answer_call(table, route, call, respond);
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

void dispatch(std::shared_ptr<Table const> const& table, http::Request request,
              http::Respond const& caller) {
    auto const& gate = table->gate;
    auto found = find(table->routes, request);
    auto who = gate.authenticate(request);
    auto const call = std::make_shared<Call>(Call{std::move(request), {}, std::move(found.ids)});
    auto const* const route = found.route;
    auto const respond = [call, table, route, caller](http::Response response) {
        if (table->gate.every) table->gate.every(route, call->request, response);
        caller(std::move(response));
    };
    if (auto const own =
            gate.refuse_other_sites ? gate.refuse_other_sites(call->request) : Result<void>();
        !own) {
        if (!who) return refuse_stranger(gate, *call, own.error(), respond);
        call->who = *who;
        return refuse_site(gate, *call, own.error(), respond);
    }
    if (!who && welcomes(route, call->request))
        return answer_stranger(*table, *route, *call, respond);
    if (!who) return refuse_stranger(gate, *call, who.error(), respond);
    call->who = *who;
    if (auto const place = enter(gate, *call); !place)
        return respond(refusal(*call, place.error()));
    auto const denied = route ? denial(*call, *route) : std::nullopt;
    bool const counts = denied || call->request.method != "GET";
    // `call` and `table` live as long as the answer is outstanding.
    auto answer = [call, table, counts, respond](http::Response response) {
        if (counts) table->gate.answered(*call, response);
        respond(std::move(response));
    };
    if (counts)
        if (auto const hold = gate.take_change(call->who.name); hold.count())
            return answer(too_many(*call, hold, wait_or_raise));
    if (!route) return answer(no_such_route(*call, std::move(found.allowed)));
    if (denied) return answer(refusal(*call, *denied));
    answer_call(*table, *route, *call, answer);
}

}  // namespace

http::Handler router(Engine& engine, std::vector<Route> routes, Gate gate) {
    auto const table =
        std::make_shared<Table const>(Table{engine, std::move(routes), std::move(gate)});
    return [table](http::Request request, http::Respond const& respond) {
        dispatch(table, std::move(request), respond);
    };
}

std::string noun_of(std::string_view path) {
    auto const parts = segments(path);
    auto const at = parts.front() == "v1" ? 1U : 0U;
    if (parts.size() == at || parts[at].starts_with('{')) return {};
    for (auto const* const open : {"livez", "readyz", "openapi.json", "problems", "sessions"})
        if (parts[at] == open) return {};
    return std::string(parts[at]);
}

std::vector<std::string> nouns_of(std::vector<Route> const& routes) {
    std::set<std::string> nouns;
    for (auto const& route : routes) nouns.insert(noun_of(route.path));
    nouns.erase("");
    return {nouns.begin(), nouns.end()};
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
