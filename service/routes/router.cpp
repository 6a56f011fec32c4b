// SPDX-License-Identifier: Apache-2.0
#include "service/routes/router.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

namespace vfmgr {
namespace {

std::vector<std::string_view> segments(std::string_view path) {
    std::vector<std::string_view> parts;
    while (!path.empty()) {
        auto const slash = path.find('/', 1);
        parts.push_back(path.substr(1, slash == path.npos ? path.npos : slash - 1));
        path = slash == path.npos ? std::string_view{} : path.substr(slash);
    }
    return parts;
}

std::optional<std::map<std::string, std::string>> match(std::string_view pattern,
                                                        std::string_view path) {
    auto const wanted = segments(pattern);
    auto const given = segments(path);
    if (wanted.size() != given.size()) return std::nullopt;
    std::map<std::string, std::string> ids;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i].starts_with('{'))
            ids[std::string(wanted[i].substr(1, wanted[i].size() - 2))] = given[i];
        else if (wanted[i] != given[i])
            return std::nullopt;
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
    for (auto const& route : routes) {
        auto ids = match(route.path, request.path);
        if (!ids) continue;
        found.allowed.push_back(route.method);
        if (route.method != request.method) continue;
        found.route = &route;
        found.ids = std::move(*ids);
    }
    return found;
}

Error no_route(http::Request const& request, std::vector<std::string> const& allowed) {
    if (allowed.empty())
        return {Problem::not_found, fmt::format("there is no {}", request.path),
                "GET /v1 lists what there is"};
    return {Problem::method_not_allowed,
            fmt::format("{} does not take {}", request.path, request.method),
            "use one of the methods in the Allow header"};
}

std::string joined(std::vector<std::string> const& words) {
    std::string text;
    for (auto const& word : words) text += (text.empty() ? "" : ", ") + word;
    return text;
}

template <class Number>
std::optional<Number> whole(std::string_view text) {
    Number value{};
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

void dispatch(std::vector<Route> const& routes, Authenticate const& authenticate,
              Audit const& audit, http::Request request, http::Respond respond) {
    auto found = find(routes, request);
    auto who = authenticate(request);
    auto call = std::make_shared<Call>(Call{std::move(request), {}, std::move(found.ids)});
    if (!who) return respond(refusal(*call, who.error()));
    call->who = *who;
    if (!found.route) {
        auto response = refusal(*call, no_route(call->request, found.allowed));
        if (!found.allowed.empty()) response.headers["Allow"] = joined(found.allowed);
        return respond(std::move(response));
    }
    bool const changes = call->request.method != "GET";
    // `call` and `audit` live as long as the answer is outstanding.
    auto answer = [call, &audit, changes, respond](http::Response response) {
        if (changes) audit(*call, response);
        respond(std::move(response));
    };
    if (call->who.role < found.route->role)
        return answer(refusal(
            *call, Error{Problem::forbidden,
                         fmt::format("{} has role {}, this needs {}", call->who.name,
                                     enum_name(call->who.role), enum_name(found.route->role)),
                         "ask an admin of this host for it"}));
    if (auto const known = http::check_query(call->request, found.route->query); !known)
        return answer(refusal(*call, known.error()));
    if (auto other = http::refuse_other_media(call->request)) return answer(std::move(*other));
    try {
        found.route->handle(*call, answer);
    } catch (std::exception const& bug) {
        answer(refusal(*call, Error{Problem::internal, bug.what(), "report this as a bug"}));
    }
}

}  // namespace

http::Handler router(std::vector<Route> routes, Authenticate authenticate, Audit audit) {
    struct Table {
        std::vector<Route> routes;
        Authenticate authenticate;
        Audit audit;
    };
    auto table = std::make_shared<Table const>(
        Table{std::move(routes), std::move(authenticate), std::move(audit)});
    return [table](http::Request request, http::Respond respond) {
        dispatch(table->routes, table->authenticate, table->audit, std::move(request),
                 [table, respond = std::move(respond)](http::Response response) {
                     respond(std::move(response));
                 });
    };
}

http::Response refusal(Call const& call, Error const& error) {
    return http::problem_response(error, call.request);
}

http::Response list_response(nlohmann::json items) {
    return json_response(200, {{"items", std::move(items)}, {"next", nullptr}});
}

http::Response dry_run_response(std::vector<std::string> notes) {
    nlohmann::json plan{{"steps", nlohmann::json::array()},
                        {"blast_radius", nlohmann::json::array()},
                        {"notes", std::move(notes)}};
    return json_response(200, {{"plan", std::move(plan)}});
}

Result<PciAddress> pf_id(Call const& call) {
    return PciAddress::parse(call.ids.at("pci"));
}

Result<std::uint16_t> vf_index(Call const& call) {
    if (auto const index = whole<std::uint16_t>(call.ids.at("index"))) return *index;
    return fail(Problem::invalid_request,
                fmt::format("{} is not a VF number", call.ids.at("index")),
                "name it as in /v1/pfs/0000:3b:00.0/vfs/2");
}

Result<bool> wants_dry_run(Call const& call) {
    auto const it = call.request.query.find("dry_run");
    if (it == call.request.query.end() || it->second == "false") return false;
    if (it->second == "true") return true;
    return fail(Problem::invalid_request,
                fmt::format("dry_run is true or false, not {}", it->second),
                "ask with ?dry_run=true");
}

Result<std::optional<std::uint64_t>> if_match(Call const& call) {
    auto const it = call.request.headers.find("if-match");
    if (it == call.request.headers.end() || it->second == "*") return std::nullopt;
    std::string_view text = it->second;
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
        text = text.substr(1, text.size() - 2);
    if (auto const revision = whole<std::uint64_t>(text)) return revision;
    return fail(Problem::invalid_request,
                fmt::format("If-Match {} is not an ETag of this API", text),
                "send the ETag that the GET answered with");
}

Result<std::uint32_t> wait_seconds(Call const& call, std::uint32_t most) {
    auto const it = call.request.query.find("wait");
    if (it == call.request.query.end()) return 0;
    std::string_view text = it->second;
    if (text.ends_with('s')) text.remove_suffix(1);
    auto const seconds = whole<std::uint32_t>(text);
    if (seconds && *seconds <= most) return *seconds;
    return fail(Problem::invalid_request,
                fmt::format("wait is a number of seconds up to {}, not {}", most, it->second),
                fmt::format("ask with ?wait={}", most));
}

}  // namespace vfmgr
