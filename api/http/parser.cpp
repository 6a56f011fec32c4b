// SPDX-License-Identifier: Apache-2.0
#include "api/http/parser.hpp"

#include <fmt/format.h>

#include <boost/beast/http.hpp>
#include <limits>

#include "api/http/outgoing.hpp"
#include "api/http/uri.hpp"
#include "api/http/wire.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;
namespace wire = boost::beast::http;
using ErrorCode = boost::system::error_code;

namespace {

constexpr std::uint32_t answer_header_bytes_max = 64 * 1024;
constexpr std::size_t answer_body_bytes_max = 32 * 1024 * 1024;

}  // namespace

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

struct AnswerReader::Parser {
    wire::response_parser<wire::string_body> of{};
    std::string unread{};     // what the parser needs more for, or what follows the answer
    bool needs_more = false;  // of a header or of a chunk's header
    Response header_only{};   // once that has come

    // Beast 1.74 asserts that a chunked body whose last chunk has begun goes on with no less than
    // that chunk's five bytes. Nothing of a body is complete in fewer bytes.
    [[nodiscard]] bool can_go_on() const {
        constexpr std::size_t last_chunk_bytes = 5;
        return !needs_more || !of.is_header_done() || unread.size() >= last_chunk_bytes;
    }
    // Trailers of a chunked body go into the same container and must not pass for headers.
    void take_header() {
        auto const& answer = of.get();
        header_only.status = static_cast<int>(answer.result_int());
        for (auto const& field : answer)
            header_only.headers[lower_case(std::string(field.name_string()))] =
                std::string(field.value());
        header_only.content_type = std::string(answer[wire::field::content_type]);
    }
    [[nodiscard]] static std::optional<Unreadable> check(ErrorCode error) {
        if (!error || error == wire::error::need_more) return std::nullopt;
        if (error == wire::error::body_limit)
            return Unreadable{true, std::to_string(answer_body_bytes_max)};
        return Unreadable{false, error.message()};
    }
};

AnswerReader::AnswerReader(Of request) : parser_(std::make_unique<Parser>()) {
    parser_->of.header_limit(answer_header_bytes_max);
    parser_->of.body_limit(answer_body_bytes_max);
    if (request == Of::head) parser_->of.skip(true);
}

AnswerReader::~AnswerReader() = default;

// The header comes first: when header and body arrive together, Beast 1.74 forgets that the header
// exceeded the body limit and reserves what Content-Length claims.
std::optional<Unreadable> AnswerReader::read(std::string_view part) {
    auto& [of, unread, needs_more, header_only] = *parser_;
    unread += part;
    std::size_t used = 0;
    ErrorCode error;
    bool const had_header = of.is_header_done();
    of.eager(had_header);
    while (!error && !of.is_done() && used < unread.size() && parser_->can_go_on() &&
           of.is_header_done() == had_header) {
        used += of.put(asio::buffer(unread.data() + used, unread.size() - used), error);
        needs_more = error == wire::error::need_more;
    }
    unread.erase(0, used);
    if (!had_header && of.is_header_done()) parser_->take_header();
    return Parser::check(error);
}

std::optional<Unreadable> AnswerReader::end() {
    if (done()) return std::nullopt;
    ErrorCode error = wire::error::end_of_stream;
    if (parser_->of.got_some()) parser_->of.put_eof(error = {});
    return Parser::check(error);
}

bool AnswerReader::has_header() const {
    return parser_->of.is_header_done();
}

bool AnswerReader::done() const {
    return parser_->of.is_done();
}

bool AnswerReader::started() const {
    return parser_->of.got_some() || !parser_->unread.empty();
}

bool AnswerReader::keeps_connection() const {
    return done() && parser_->of.keep_alive() && parser_->unread.empty();
}

int AnswerReader::status() const {
    return parser_->header_only.status;
}

void AnswerReader::take_as_it_comes() {
    parser_->of.body_limit(std::numeric_limits<std::uint64_t>::max());
}

std::string AnswerReader::take_body() {
    return std::exchange(parser_->of.get().body(), {});
}

Response AnswerReader::response() {
    auto response = parser_->header_only;
    response.body = take_body();
    return response;
}

}  // namespace vfmgr::http
