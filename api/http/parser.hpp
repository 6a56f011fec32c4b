// SPDX-License-Identifier: Apache-2.0
// Reads what vfmgr needs from Beast's request parser, and writes into its messages. Templates keep
// Beast in the .cpp files; no state. Called on the io thread.
#pragma once

#include <boost/system/error_code.hpp>
#include <optional>

#include "api/http/http.hpp"
#include "api/http/request.hpp"

namespace vfmgr::http {

template <class Parser>
void prepare(Parser& parser, Limits const& limits) {
    parser.header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
    parser.body_limit(limits.body_bytes_max);
}

// Called when the header is complete and before the body is read. Trailers of a chunked body go
// into the same container and must not pass for headers.
template <class Parser>
ReceivedHeader header_of(Parser const& parser) {
    auto const& message = parser.get();
    ReceivedHeader header{.method = std::string(message.method_string()),
                          .target = std::string(message.target()),
                          .version = message.version(),
                          .chunked = parser.chunked(),
                          .fields = {}};
    for (auto const& field : message)
        header.fields.emplace_back(std::string(field.name_string()), std::string(field.value()));
    return header;
}

// Takes a response that sendable() returned. The message points to `body`.
template <class Message>
Message message_of(Response const& response, std::string const& body) {
    Message message;
    message.result(static_cast<unsigned>(response.status));
    for (auto const& [name, value] : response.headers) message.set(name, value);
    message.body() = {body.data(), body.size()};
    return message;
}

// Returns nullopt if the peer has gone, as there is no peer to answer.
std::optional<Refusal> refusal_of(boost::system::error_code const& error, Limits const& limits);

}  // namespace vfmgr::http
