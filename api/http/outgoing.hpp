// SPDX-License-Identifier: Apache-2.0
// What all clients share: the request as it is sent, the reading of its answer, and how they name
// what went wrong. Internal to api/http; any thread.
#pragma once

#include <boost/system/error_code.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/http/http.hpp"
#include "api/http/tls.hpp"

namespace vfmgr::http {

// Whether another request may follow on the connection.
enum class Afterwards { kept, closed };
// Whether the server may have read any of the request.
enum class Sent { no, maybe };

// Returns the whole message. Fails with invalid_request if HTTP can't carry it.
[[nodiscard]] Result<std::string> request_text(Request const& request, Target const& target,
                                               std::string const& token, Afterwards afterwards);

// Why an answer can't be read.
struct Unreadable {
    bool too_large = false;
    std::string why{};
};

// Reads one answer, which arrives in parts of any length. Beast stays in parser.cpp.
class AnswerReader {
  public:
    enum class Of { get, head };  // a HEAD's answer has no body
    [[nodiscard]] static Of of(Request const& request) {
        return request.method == "HEAD" ? Of::head : Of::get;
    }
    explicit AnswerReader(Of request);
    ~AnswerReader();
    AnswerReader(AnswerReader const&) = delete;
    AnswerReader& operator=(AnswerReader const&) = delete;

    // Reads on; only up to the end of the header, while that has not come. What is left of `part`
    // is read by the next call.
    [[nodiscard]] std::optional<Unreadable> read(std::string_view part);
    // The connection ended in order.
    [[nodiscard]] std::optional<Unreadable> end();
    [[nodiscard]] bool has_header() const;
    [[nodiscard]] bool done() const;
    [[nodiscard]] bool started() const;  // any of it has come
    // Whether the server takes another request on the connection, and has sent nothing beyond.
    [[nodiscard]] bool keeps_connection() const;
    [[nodiscard]] int status() const;
    // From here on the body may be of any length: take_body() takes what has come of it.
    void take_as_it_comes();
    [[nodiscard]] std::string take_body();
    [[nodiscard]] Response response();

  private:
    struct Parser;
    std::unique_ptr<Parser> parser_;
};

// `doing`: "the TLS handshake", "the answer".
[[nodiscard]] Error not_in_time(Target const& target, std::string_view doing, Sent sent);
// `session`: null without TLS.
[[nodiscard]] Error ended_during(Target const& target, SSL const* session,
                                 boost::system::error_code why, std::string_view doing, Sent sent);
[[nodiscard]] Error unreadable(Target const& target, Unreadable const& answer, Sent sent);
// The client itself ends what it has begun.
[[nodiscard]] Error client_stops(Target const& target, Sent sent);
[[nodiscard]] Error silent(Target const& target, std::chrono::seconds silence_max);

}  // namespace vfmgr::http
