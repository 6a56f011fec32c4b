// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>
#include <limits>
#include <optional>

#include "api/http/connecting.hpp"
#include "api/http/http.hpp"
#include "api/http/listening.hpp"
#include "api/http/tls.hpp"
#include "api/http/uri.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace wire = boost::beast::http;
using ErrorCode = boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;

namespace {

constexpr std::size_t response_header_bytes_max = 64 * 1024;
constexpr std::size_t response_body_bytes_max = 32 * 1024 * 1024;

Result<wire::request<wire::string_body>> message_of(Request const& request, Target const& target,
                                                    std::string const& token) {
    wire::request<wire::string_body> message;
    message.version(11);
    if (!valid_header_name(request.method))
        return fail(Problem::invalid_request, fmt::format("'{}' is not a method", request.method),
                    "use GET, PUT, POST, PATCH or DELETE");
    message.method_string(request.method);
    message.target(format_target({request.path, request.query}));
    message.set(wire::field::host, authority(target));
    message.set(wire::field::accept, "application/json, application/problem+json");
    for (auto const& [name, value] : request.headers) {
        if (!valid_header_name(name) || !valid_header_value(value))
            return fail(Problem::invalid_request,
                        fmt::format("the header '{}' holds characters that HTTP forbids", name),
                        "remove control characters from its name and value");
        message.set(name, value);
    }
    if (!token.empty()) {
        if (!valid_header_value(token))
            return fail(Problem::invalid_request, "the token holds control characters",
                        "give the token as vfctl token create printed it");
        message.set(wire::field::authorization, "Bearer " + token);
    }
    if (!request.body.empty() && !request.headers.contains("content-type"))
        message.set(wire::field::content_type, "application/json");
    message.body() = request.body;
    message.keep_alive(false);
    message.prepare_payload();
    return message;
}

// Runs one request over one connection. Every operation runs on `io`, within the deadline.
class Exchange {
  public:
    Exchange(Target const& target, Deadline deadline)
        : target_(target), deadline_(deadline), socket_(io_) {
        parser_.header_limit(response_header_bytes_max);
        parser_.body_limit(response_body_bytes_max);
    }
    Result<void> open();
    Result<Response> send(wire::request<wire::string_body> const& message);
    Result<Response> follow(wire::request<wire::string_body> const& message,
                            std::chrono::seconds silence_max,
                            std::function<bool(std::string_view)> const& take);

  private:
    enum class Sent { no, maybe };
    Result<void> handshake(TlsTarget const& target);
    // Reads the answer's header.
    Result<void> begin(wire::request<wire::string_body> const& message);
    Result<Response> whole();
    [[nodiscard]] Response response();
    Result<void> finish(char const* doing, Sent sent);
    Result<void> refused(char const* doing, Sent sent);

    Target const& target_;
    Deadline deadline_;
    asio::io_context io_{1};
    Socket socket_;
    std::optional<asio::ssl::context> context_;
    std::optional<asio::ssl::stream<Socket&>> tls_;
    beast::flat_buffer buffer_;
    wire::response_parser<wire::string_body> parser_;
    std::optional<ErrorCode> result_;  // result of the last operation started
};

Result<void> Exchange::open() {
    VFMGR_TRY(FileDescriptor fd, connect_to(target_, deadline_));
    ErrorCode error;
    socket_.assign(asio::generic::stream_protocol(family_of(fd.get()), 0), fd.get(), error);
    if (error)
        return fail(Problem::internal, fmt::format("can't use a socket: {}", error.message()),
                    "check the limits of open files and memory");
    (void)fd.release();
    if (auto const* tls = std::get_if<TlsTarget>(&target_)) return handshake(*tls);
    return {};
}

Result<void> Exchange::handshake(TlsTarget const& target) {
    VFMGR_TRY(SslContext context, client_context(target));
    context_.emplace(context.release());
    tls_.emplace(socket_, *context_);
    VFMGR_CHECK(expect_host(tls_->native_handle(), target));
    tls_->async_handshake(asio::ssl::stream_base::client,
                          [this](ErrorCode error) { result_ = error; });
    VFMGR_CHECK(finish("the TLS handshake", Sent::no));
    return check_fingerprint(tls_->native_handle(), target);
}

// Runs the started operation until it ends or the deadline passes.
Result<void> Exchange::finish(char const* doing, Sent sent) {
    result_.reset();
    io_.restart();
    io_.run_until(deadline_);
    if (result_ && !*result_) return {};
    return refused(doing, sent);
}

Result<void> Exchange::refused(char const* doing, Sent sent) {
    std::string const unknown =
        sent == Sent::maybe ? "; whether the request was carried out is not known" : "";
    if (!result_)
        return fail(
            Problem::timed_out,
            fmt::format("{} did not finish {} in time{}", describe(target_), doing, unknown),
            "check the operations for what still runs, or allow more time");
    auto const why = tls_ ? verify_text(tls_->native_handle()) : std::string{};
    if (!why.empty())
        return fail(Problem::unavailable,
                    fmt::format("the certificate of {} is not trusted: {}", describe(target_), why),
                    "give the right CA file, or the certificate's fingerprint");
    if (result_->category() == asio::error::get_ssl_category())
        if (auto error = refused_certificate(result_->value(), describe(target_)))
            return fail(std::move(*error));
    if (*result_ == wire::error::body_limit)
        return fail(Problem::limit_exceeded,
                    fmt::format("the answer of {} is larger than {} bytes", describe(target_),
                                response_body_bytes_max),
                    "ask for less at once");
    Error error{
        Problem::unavailable,
        fmt::format("{} ended the connection during {}{}", describe(target_), doing, unknown),
        remedy_of(target_)};
    error.causes.push_back({doing, {}, result_->message()});
    return fail(std::move(error));
}

Result<void> Exchange::begin(wire::request<wire::string_body> const& message) {
    auto const done = [this](ErrorCode error, std::size_t) { result_ = error; };
    if (tls_)
        wire::async_write(*tls_, message, done);
    else
        wire::async_write(socket_, message, done);
    auto const written = finish("the request", Sent::maybe);
    // A server may refuse early, answer, and stop reading. Its answer counts then, not the failed
    // write.
    if (!written && written.error().problem == Problem::timed_out) return fail(written.error());
    if (message.method() == wire::verb::head) parser_.skip(true);
    // Read the header first: when header and body arrive together, Beast 1.74 forgets that the
    // header exceeded the body limit and reserves what Content-Length claims.
    if (tls_)
        wire::async_read_header(*tls_, buffer_, parser_, done);
    else
        wire::async_read_header(socket_, buffer_, parser_, done);
    return finish("the answer", Sent::maybe);
}

Result<Response> Exchange::whole() {
    auto const done = [this](ErrorCode error, std::size_t) { result_ = error; };
    if (tls_)
        wire::async_read(*tls_, buffer_, parser_, done);
    else
        wire::async_read(socket_, buffer_, parser_, done);
    VFMGR_CHECK(finish("the answer", Sent::maybe));
    return response();
}

Response Exchange::response() {
    auto& answer = parser_.get();
    Response response;
    response.status = static_cast<int>(answer.result_int());
    for (auto const& field : answer)
        response.headers[lower_case(std::string(field.name_string()))] = std::string(field.value());
    response.content_type = std::string(answer[wire::field::content_type]);
    response.body = std::move(answer.body());
    return response;
}

Result<Response> Exchange::send(wire::request<wire::string_body> const& message) {
    VFMGR_CHECK(begin(message));
    return whole();
}

Result<Response> Exchange::follow(wire::request<wire::string_body> const& message,
                                  std::chrono::seconds silence_max,
                                  std::function<bool(std::string_view)> const& take) {
    VFMGR_CHECK(begin(message));
    if (parser_.get().result_int() / 100 != 2) return whole();
    parser_.body_limit(std::numeric_limits<std::uint64_t>::max());  // it is passed on at once
    auto const done = [this](ErrorCode error, std::size_t) { result_ = error; };
    while (!parser_.is_done()) {
        deadline_ = std::chrono::steady_clock::now() + silence_max;
        if (tls_)
            wire::async_read_some(*tls_, buffer_, parser_, done);
        else
            wire::async_read_some(socket_, buffer_, parser_, done);
        auto const came = finish("a stream", Sent::no);
        if (!came && came.error().problem == Problem::timed_out)
            return fail(
                Problem::timed_out,
                fmt::format("{} sent nothing for {} s", describe(target_), silence_max.count()),
                "connect again");
        VFMGR_CHECK(came);
        auto const part = std::exchange(parser_.get().body(), {});
        if (!part.empty() && !take(part)) break;
    }
    return response();
}

}  // namespace

Client::Client(Target target) : target_(std::move(target)) {}

Result<Response> Client::send(Request const& request, std::chrono::seconds timeout) const {
    VFMGR_TRY(auto const message, message_of(request, target_, token_));
    Exchange exchange(target_, std::chrono::steady_clock::now() + timeout);
    VFMGR_CHECK(exchange.open());
    return exchange.send(message);
}

Result<Response> Client::follow(Request const& request, std::chrono::seconds silence_max,
                                std::function<bool(std::string_view)> const& take) const {
    VFMGR_TRY(auto const message, message_of(request, target_, token_));
    Exchange exchange(target_, std::chrono::steady_clock::now() + silence_max);
    VFMGR_CHECK(exchange.open());
    return exchange.follow(message, silence_max, take);
}

}  // namespace vfmgr::http
