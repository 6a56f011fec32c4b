// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/http/http.hpp"
#include "api/http/wire.hpp"

namespace vfmgr::http {

Response json_response(int status, nlohmann::json const& body) {
    Response response;
    response.status = status;
    response.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    return response;
}

Response problem_response(Error const& error, std::string const& instance,
                          std::string const& request_id) {
    nlohmann::json body = error;
    body["instance"] = instance;
    body["request_id"] = request_id;
    Response response;
    response.status = http_status(error);
    response.content_type = "application/problem+json";
    // A detail may quote octets from the kernel or a guest. By default, dump() throws on text that
    // is not UTF-8; replace makes it substitute.
    response.body = body.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (error.problem == Problem::unauthorized) response.headers["WWW-Authenticate"] = "Bearer";
    if (response.status == 503) response.headers["Retry-After"] = "5";
    if (error.revision) response.headers["ETag"] = "\"" + std::to_string(*error.revision) + "\"";
    return response;
}

Response problem_response_as(int status, Error const& error, std::string const& instance,
                             std::string const& request_id) {
    Response response = problem_response(error, instance, request_id);
    auto body = nlohmann::json::parse(response.body);
    body["status"] = status;
    response.status = status;
    response.body = body.dump(2) + "\n";
    if (status == 429) response.headers["Retry-After"] = "1";
    return response;
}

std::string refusal_text(Error const& error) {
    auto const id = random_request_id();
    auto const response = problem_response(error, "", id);
    std::string text = response.status == 403 ? "HTTP/1.1 403 Forbidden\r\n"
                                              : "HTTP/1.1 503 Service Unavailable\r\n";
    text += "Connection: close\r\nX-Request-Id: " + id + "\r\n";
    for (auto const& [name, value] : response.headers)
        text += fmt::format("{}: {}\r\n", name, value);
    return text + fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n\r\n{}",
                              response.content_type, response.body.size(), response.body);
}

bool valid_request_id(std::string_view text) {
    return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
    });
}

}  // namespace vfmgr::http
