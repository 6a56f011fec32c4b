// SPDX-License-Identifier: Apache-2.0
#include "api/http/outgoing.hpp"

#include <fmt/format.h>

#include <boost/asio/ssl/error.hpp>
#include <map>

#include "api/http/connecting.hpp"
#include "api/http/uri.hpp"

namespace vfmgr::http {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

namespace {

std::string_view unknown_if(Sent sent) {
    return sent == Sent::maybe ? "; whether the request was carried out is not known" : "";
}

Error cut_short(Target const& target, std::string_view doing, Sent sent, std::string why) {
    Error error{Problem::unavailable,
                fmt::format("{} ended the connection during {}{}", describe(target), doing,
                            unknown_if(sent)),
                remedy_of(target)};
    error.causes.push_back({std::string(doing), {}, std::move(why)});
    return error;
}

// Names in lower case: a header of the request replaces one that every message has.
Result<std::map<std::string, std::string>> headers_of(Request const& request, Target const& target,
                                                      std::string const& token) {
    std::map<std::string, std::string> headers{
        {"host", authority(target)}, {"accept", "application/json, application/problem+json"}};
    for (auto const& [name, value] : request.headers) {
        if (!valid_header_name(name) || !valid_header_value(value))
            return fail(Problem::invalid_request,
                        fmt::format("the header '{}' holds characters that HTTP forbids", name),
                        "remove control characters from its name and value");
        headers[lower_case(name)] = value;
    }
    if (!token.empty()) {
        if (!valid_header_value(token))
            return fail(Problem::invalid_request, "the token holds control characters",
                        "give the token as vfctl token create printed it");
        headers["authorization"] = "Bearer " + token;
    }
    if (!request.body.empty()) headers.try_emplace("content-type", "application/json");
    return headers;
}

}  // namespace

Result<std::string> request_text(Request const& request, Target const& target,
                                 std::string const& token, Afterwards afterwards) {
    if (!valid_header_name(request.method))
        return fail(Problem::invalid_request, fmt::format("'{}' is not a method", request.method),
                    "use GET, PUT, POST, PATCH or DELETE");
    VFMGR_TRY(auto headers, headers_of(request, target, token));
    // These say where the message ends, and belong to this connection (RFC 9112, 6.3 and 9.3).
    for (auto const* framing : {"connection", "transfer-encoding", "content-length"})
        headers.erase(framing);
    bool const has_body = !request.body.empty() || request.method == "POST" ||
                          request.method == "PUT" || request.method == "PATCH";
    if (has_body) headers["content-length"] = std::to_string(request.body.size());
    if (afterwards == Afterwards::closed) headers["connection"] = "close";
    auto text = fmt::format("{} {} HTTP/1.1\r\n", request.method,
                            format_target({request.path, request.query}));
    for (auto const& [name, value] : headers) text += fmt::format("{}: {}\r\n", name, value);
    return text + "\r\n" + request.body;
}

Error not_in_time(Target const& target, std::string_view doing, Sent sent) {
    return {
        Problem::timed_out,
        fmt::format("{} did not finish {} in time{}", describe(target), doing, unknown_if(sent)),
        "check the operations for what still runs, or allow more time"};
}

Error ended_during(Target const& target, SSL const* session, ErrorCode why, std::string_view doing,
                   Sent sent) {
    auto const untrusted = session ? verify_text(session) : std::string{};
    if (!untrusted.empty())
        return {
            Problem::unavailable,
            fmt::format("the certificate of {} is not trusted: {}", describe(target), untrusted),
            "give the right CA file, or the certificate's fingerprint"};
    if (why.category() == asio::error::get_ssl_category())
        if (auto error = refused_certificate(why.value(), describe(target)))
            return std::move(*error);
    return cut_short(target, doing, sent, why.message());
}

Error unreadable(Target const& target, Unreadable const& answer, Sent sent) {
    if (!answer.too_large) return cut_short(target, "the answer", sent, answer.why);
    return {Problem::limit_exceeded,
            fmt::format("the answer of {} is larger than {} bytes", describe(target), answer.why),
            "ask for less at once"};
}

Error client_stops(Target const& target, Sent sent) {
    return {sent == Sent::maybe ? Problem::timed_out : Problem::unavailable,
            fmt::format("the request to {} was ended, because this program stops{}",
                        describe(target), unknown_if(sent)),
            "try again when it runs again"};
}

Error silent(Target const& target, std::chrono::seconds silence_max) {
    return {Problem::timed_out,
            fmt::format("{} sent nothing for {} s", describe(target), silence_max.count()),
            "connect again"};
}

}  // namespace vfmgr::http
