// SPDX-License-Identifier: Apache-2.0
// Server-sent events, as the HTML standard defines text/event-stream: what a server writes, and the
// parser of a client. Values; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace vfmgr::http {

struct SentEvent {
    std::string id{};    // where a client resumes; empty: none was sent so far
    std::string name{};  // empty: an ordinary one
    std::string data{};
    bool operator==(SentEvent const&) const = default;
};

// Returns an event as text. `data` is one line; so is `name`, which may be empty.
[[nodiscard]] std::string sse_event(std::uint64_t id, std::string_view name, std::string_view data);
// Returns a comment that keeps a connection from falling silent, and moves the place where a client
// resumes without being an event.
[[nodiscard]] std::string sse_heartbeat(std::optional<std::uint64_t> id);

// Parses a stream that arrives in parts of any length.
class SseParser {
  public:
    explicit SseParser(std::size_t bytes_max = 1 << 20) : bytes_max_(bytes_max) {}

    // Calls `take` with each event that is complete. False, then and from then on: an event is
    // longer than `bytes_max`.
    [[nodiscard]] bool feed(std::string_view part,
                            std::function<void(SentEvent const&)> const& take);
    // The id of the last event that is complete, or of a heartbeat since.
    [[nodiscard]] std::string const& last_id() const { return last_id_; }

  private:
    void end_line(std::function<void(SentEvent const&)> const& take);
    void read_field(std::string_view field, std::string_view value);

    std::size_t bytes_max_;
    std::string line_;
    bool after_return_ = false;  // a line feed that follows belongs to that line's end
    bool first_line_ = true;
    bool too_long_ = false;
    bool has_data_ = false;
    SentEvent event_;
    std::string id_;  // of what is being read
    std::string last_id_;
};

}  // namespace vfmgr::http
