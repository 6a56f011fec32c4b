// SPDX-License-Identifier: Apache-2.0
// Message parts that all clients and handlers share.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/http/http.hpp"
#include "api/http/uri.hpp"
#include "api/http/wire.hpp"
#include "api/types/json.hpp"
#include "api/types/text.hpp"

namespace vfmgr::http {
namespace {

constexpr std::size_t authorization_bytes_max = 256;
constexpr std::string_view bearer_scheme = "bearer ";  // in any case (RFC 9110, 11.1)

}  // namespace

std::string_view bearer_token(std::string_view authorization) {
    auto const scheme = authorization.substr(0, bearer_scheme.size());
    auto const same = [](char given, char expected) {
        return (given >= 'A' && given <= 'Z' ? given - 'A' + 'a' : given) == expected;
    };
    if (authorization.size() > authorization_bytes_max ||
        !std::ranges::equal(scheme, bearer_scheme, same))
        return {};
    return authorization.substr(bearer_scheme.size());
}

Request make_request(std::string method, std::string path) {
    Request request;
    request.method = std::move(method);
    request.path = std::move(path);
    return request;
}

Request make_request(std::string method, std::string path, nlohmann::json const& body) {
    auto request = make_request(std::move(method), std::move(path));
    request.body = to_json_text(body);
    request.headers["content-type"] = "application/json";
    return request;
}

Result<Response> success_of(Response response) {
    if (response.status >= 200 && response.status < 300) return response;
    auto document = parse_json(response.body);
    return fail(error_from_json(document ? *document : nlohmann::json::object()));
}

Response problem_response(Error const& error, Request const& request) {
    auto const id = request.headers.find("x-request-id");
    return problem_response(error, request.path,
                            id == request.headers.end() ? std::string() : id->second);
}

// An unknown parameter must not be ignored: ?dryrun=true must not attach.
Result<void> check_query(Request const& request, std::vector<std::string> const& known) {
    for (auto const& [name, value] : request.query) {
        if (std::ranges::find(known, name) != known.end()) continue;
        return fail(
            Problem::invalid_request,
            fmt::format("{} {} has no parameter {}", request.method, request.path, quoted(name)),
            known.empty() ? "leave it out: this request has no parameters"
                          : fmt::format("its parameters are: {}", fmt::join(known, ", ")));
    }
    return {};
}

std::optional<Response> refuse_other_media(Request const& request) {
    if (request.body.empty()) return std::nullopt;
    auto const header = request.headers.find("content-type");
    auto type = header == request.headers.end() ? std::string() : lower_case(header->second);
    type.erase(std::min(type.find(';'), type.size()));
    while (type.ends_with(' ') || type.ends_with('\t')) type.pop_back();
    // RFC 7396: every PATCH of this API is a merge patch.
    bool const patches = request.method == "PATCH" && type == "application/merge-patch+json";
    if (type == "application/json" || patches) return std::nullopt;
    auto const id = request.headers.find("x-request-id");
    return problem_response_as(
        415,
        {Problem::invalid_request,
         type.empty() ? "the body has no Content-Type" : "the body is " + quoted(type),
         "send JSON with Content-Type: application/json"},
        request.path, id == request.headers.end() ? std::string() : id->second);
}

}  // namespace vfmgr::http
