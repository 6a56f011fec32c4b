// SPDX-License-Identifier: Apache-2.0
// vfctl's connection to the API: the daemon's unix socket, or HTTPS with a token. server.hpp says
// whose. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "api/types/addresses.hpp"
#include "service/cli/session.hpp"

namespace vfmgr {

struct ApiRequest {
    std::string method = "GET";
    std::string path;
    std::map<std::string, std::string> query{};
    std::map<std::string, std::string> headers{};
    std::string body{};
    std::chrono::seconds timeout{60};
    // An answer of 429 changed nothing: the request is repeated after Retry-After, for this long.
    std::chrono::seconds patience{60};
};

class Connection {
  public:
    [[nodiscard]] static Result<Connection> open(Options const& options);
    // Returns any answer, including a problem.
    [[nodiscard]] Result<http::Response> exchange(ApiRequest const& request) const;
    // Returns an answer of status 2xx; turns a problem document into the Error that it describes.
    [[nodiscard]] Result<http::Response> send(ApiRequest const& request) const;
    // As http::Client::follow().
    [[nodiscard]] Result<http::Response> follow(
        ApiRequest const& request, std::function<bool(std::string_view)> const& take) const;
    // Returns a whole list, whose pages it follows: the first page's answer with the items of all.
    // With `items_max`, the list's first items, and `next` if there are more.
    [[nodiscard]] Result<http::Response> list(ApiRequest request,
                                              std::size_t items_max = SIZE_MAX) const;

  private:
    explicit Connection(http::Client client) : client_(std::move(client)) {}
    http::Client client_;
};

[[nodiscard]] Result<nlohmann::json> json_of(http::Response const& response);
// Reads an answer's value, for the types that connection.cpp lists. Ignores members that it does
// not know: a newer vfmgrd may send more.
template <class T>
[[nodiscard]] Result<T> value_of(http::Response const& response);
template <class T>
[[nodiscard]] Result<T> get(Connection const& connection, std::string path) {
    VFMGR_TRY(auto const response, connection.send({.path = std::move(path)}));
    return value_of<T>(response);
}
template <class T>
[[nodiscard]] Result<std::vector<T>> get_list(Connection const& connection, std::string path,
                                              std::size_t items_max = SIZE_MAX) {
    VFMGR_TRY(auto const response, connection.list({.path = std::move(path)}, items_max));
    VFMGR_TRY(auto list, value_of<ItemList<T>>(response));
    return std::move(list.items);
}
[[nodiscard]] Error problem_of(http::Response const& response);

// Accepts "https://host", "https://host:8470", "https://[::1]:8470".
[[nodiscard]] Result<HostPort> parse_url(std::string const& url);

// Returns the content of a file; "-" is standard input.
[[nodiscard]] Result<std::string> read_text(std::string const& file);
// Returns the document that the file has in YAML or JSON, as JSON.
[[nodiscard]] Result<std::string> read_document(std::string const& file);
// As read_text(), without leading and trailing blanks.
[[nodiscard]] Result<std::string> read_token(std::string const& file);

}  // namespace vfmgr
