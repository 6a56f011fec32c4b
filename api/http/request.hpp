// SPDX-License-Identifier: Apache-2.0
// Checks requests beyond HTTP's grammar, passes them on, and cleans answers. Internal to api/http.
// No state; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/http/http.hpp"

namespace vfmgr::http {

// A refusal that the transport answers itself, with HTTP's own status.
struct Refusal {
    int status = 400;
    Error error;
};
[[nodiscard]] Refusal malformed(std::string detail);
[[nodiscard]] Refusal too_slow(Limits const& limits);
[[nodiscard]] Refusal unanswered(Limits const& limits);
[[nodiscard]] Refusal stopping();
[[nodiscard]] Refusal header_too_large(Limits const& limits);
[[nodiscard]] Refusal body_too_large(Limits const& limits);

struct ReceivedHeader {
    std::string method;
    std::string target;
    unsigned version = 11;
    bool chunked = false;
    std::vector<std::pair<std::string, std::string>> fields;  // as sent, in order
};
[[nodiscard]] tl::expected<Request, Refusal> request_of(ReceivedHeader header, Peer const& peer);

// Turns a handler's exception into an answer.
void call_handler(Handler const& handler, Request request, Respond const& respond);

// Adds the headers that every answer has, and drops those that would break the message.
[[nodiscard]] Response sendable(Response response, std::string const& request_id);

}  // namespace vfmgr::http
