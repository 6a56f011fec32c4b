// SPDX-License-Identifier: Apache-2.0
#include "api/http/parser.hpp"

#include <fmt/format.h>

#include <boost/beast/http.hpp>

#include "api/http/wire.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;
namespace wire = boost::beast::http;
using ErrorCode = boost::system::error_code;

std::optional<Refusal> refusal_of(ErrorCode const& error, Limits const& limits) {
    if (error == wire::error::end_of_stream) return std::nullopt;
    if (error == wire::error::header_limit || error == wire::error::buffer_overflow)
        return header_too_large(limits);
    if (error == wire::error::body_limit) return body_too_large(limits);
    if (error == wire::error::partial_message)
        return malformed("the request ended before it was complete");
    if (error.category() == wire::make_error_code(wire::error::bad_method).category())
        return malformed(fmt::format("the request is malformed: {}", error.message()));
    return std::nullopt;
}

tl::expected<Request, Response> read_request(std::string_view bytes, Limits const& limits) {
    wire::request_parser<wire::string_body> parser;
    prepare(parser, limits);
    auto const answer = [](Refusal const& refusal) {
        return tl::unexpected(
            problem_response_as(refusal.status, refusal.error, "", random_request_id()));
    };
    ErrorCode error;
    auto used = parser.put(asio::buffer(bytes.data(), bytes.size()), error);
    if (!error && !parser.is_header_done()) error = wire::error::partial_message;
    if (error == wire::error::need_more) error = wire::error::partial_message;
    if (error) return answer(refusal_of(error, limits).value_or(malformed("nothing was sent")));
    auto request = request_of(header_of(parser), UnixPeer{});
    if (!request) return answer(request.error());
    parser.eager(true);
    while (!error && !parser.is_done() && used < bytes.size())
        used += parser.put(asio::buffer(bytes.data() + used, bytes.size() - used), error);
    if (!parser.is_done() && (!error || error == wire::error::need_more))
        error = wire::error::partial_message;
    if (error) return answer(refusal_of(error, limits).value_or(malformed("nothing was sent")));
    request->body = std::move(parser.get().body());
    return std::move(*request);
}

}  // namespace vfmgr::http
