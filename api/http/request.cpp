// SPDX-License-Identifier: Apache-2.0
#include "api/http/request.hpp"

#include <fmt/format.h>

#include "api/http/uri.hpp"
#include "api/http/wire.hpp"
#include "api/types/text.hpp"

namespace vfmgr::http {
namespace {

// Joins repeated fields as RFC 9110, 5.3 defines. `host` routes the request and must not repeat.
tl::expected<void, Refusal> add_field(std::map<std::string, std::string>& headers, std::string name,
                                      std::string value) {
    name = lower_case(std::move(name));
    if (!valid_header_value(value) || !valid_utf8(value))
        return tl::unexpected(malformed(fmt::format("the header '{}' is not UTF-8 text", name)));
    auto const [at, added] = headers.emplace(name, value);
    if (added) return {};
    if (name == "host") return tl::unexpected(malformed("the header 'host' is given twice"));
    at->second += ", " + value;
    return {};
}

}  // namespace

Refusal malformed(std::string detail) {
    return {400, {Problem::invalid_request, std::move(detail), "send HTTP/1.1 as in RFC 9112"}};
}

Refusal too_slow(Limits const& limits) {
    return {
        408,
        {Problem::timed_out,
         fmt::format("the request was not complete within {} s", limits.read_seconds_max.count()),
         "send it faster, or try again"}};
}

Refusal unanswered(Limits const& limits) {
    return {504,
            {Problem::timed_out,
             fmt::format("no answer within {} s", limits.answer_seconds_max.count()),
             "check /v1/operations for what still runs"}};
}

Refusal stopping() {
    return {503,
            {Problem::unavailable, "the server is stopping and did not answer this request",
             "try again when it runs again; accepted requests are listed in /v1/operations"}};
}

Refusal header_too_large(Limits const& limits) {
    return {431,
            {Problem::limit_exceeded,
             fmt::format("the request's header is larger than {} bytes", limits.header_bytes_max),
             "send fewer or shorter headers"}};
}

Refusal body_too_large(Limits const& limits) {
    return {413,
            {Problem::limit_exceeded,
             fmt::format("the request's body is larger than {} bytes", limits.body_bytes_max),
             "send a smaller document"}};
}

tl::expected<Request, Refusal> request_of(ReceivedHeader header, Peer const& peer) {
    Request request;
    request.peer = peer;
    request.method = header.method == "HEAD" ? "GET" : std::move(header.method);
    auto target = parse_target(header.target);
    if (!target) return tl::unexpected(Refusal{400, std::move(target).error()});
    request.path = std::move(target->path);
    request.query = std::move(target->query);
    for (auto& [name, value] : header.fields)
        if (auto added = add_field(request.headers, std::move(name), std::move(value)); !added)
            return tl::unexpected(std::move(added).error());
    if (header.version >= 11 && !request.headers.contains("host"))
        return tl::unexpected(malformed("the header 'host' is missing"));
    if (request.headers.contains("transfer-encoding") && !header.chunked)
        return tl::unexpected(malformed("the only supported transfer coding is 'chunked'"));
    if (auto const expect = request.headers.find("expect");
        expect != request.headers.end() && lower_case(expect->second) != "100-continue")
        return tl::unexpected(
            Refusal{417, malformed("the only supported expectation is 100-continue").error});
    auto& id = request.headers["x-request-id"];
    if (!valid_request_id(id)) id = random_request_id();
    return request;
}

Result<void> make_known(Request const& request, Known known) {
    auto const& presence = request.presence;
    if (!presence) return {};
    if (presence->take_place) VFMGR_CHECK(presence->take_place(known.name));
    presence->known = std::move(known);
    return {};
}

bool lapsed(Peer const&, Presence const& presence) {
    return presence.known && presence.known->holds && !presence.known->holds();
}

void call_handler(Handler const& handler, Request request, Respond const& respond) {
    auto const path = request.path;
    auto const id = request.headers["x-request-id"];
    auto const ended = [&](std::string const& by) {
        respond(problem_response({Problem::internal, "an exception ended the request" + by,
                                  "report this with the daemon's log"},
                                 path, id));
    };
    try {
        handler(std::move(request), respond);
    } catch (std::exception const& bug) {
        ended(std::string(": ") + bug.what());
    } catch (...) {
        ended("");
    }
}

Response sendable(Response response, std::string const& request_id) {
    if (response.status < 200 || response.status > 599) response.status = 500;
    Response out;
    out.status = response.status;
    out.headers = {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
    for (auto const& [name, value] : response.headers)
        if (valid_header_name(name) && valid_header_value(value)) out.headers[name] = value;
    out.headers["X-Request-Id"] = request_id;
    // RFC 9110, 6.4.1: these responses have no content.
    if (response.status == 204 || response.status == 304) return out;
    if (!response.body.empty() || response.text || response.stream)
        out.headers["Content-Type"] = response.content_type;
    out.body = std::move(response.body);
    out.text = std::move(response.text);
    return out;
}

}  // namespace vfmgr::http
