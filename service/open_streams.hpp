// SPDX-License-Identifier: Apache-2.0
// The streams that are open: how many there may be, who gets a place among them, and who has to
// give one up. The server cuts the connections of those who may no longer read at once; their
// streams end here, too. On the server's io thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/http/http.hpp"
#include "service/event_limits.hpp"

namespace vfmgr {

// One stream and its reader. Its connection owns it.
struct OpenStream {
    std::uint64_t number = 0;  // in order of arrival
    std::string principal{};
    http::Peer peer{};
    std::shared_ptr<http::Presence> presence{};
    std::function<void()> wake{};  // set once the connection takes the stream
    bool cut = false;              // another has its place
};

class OpenStreams {
  public:
    // `to_raise` ends the sentence "raise limits.event_streams_max …".
    explicit OpenStreams(std::string to_raise) : to_raise_(std::move(to_raise)) {}

    // Finds a place for the stream that the request asks for. When all are taken, a principal with
    // fewer streams than another gets that of one of the other's. Fails with unavailable.
    [[nodiscard]] Result<std::shared_ptr<OpenStream>> take_place(std::string const& principal,
                                                                 http::Request const& request,
                                                                 EventStreamLimits const& limits);
    void wake_all();

  private:
    [[nodiscard]] std::vector<std::shared_ptr<OpenStream>> open();
    [[nodiscard]] Result<void> make_room(std::string const& principal,
                                         EventStreamLimits const& limits);

    std::string to_raise_;
    std::vector<std::weak_ptr<OpenStream>> streams_;
    std::uint64_t so_far_ = 0;
};

// Answers with the stream: `next` is as http::Stream::next, and called only while its reader may
// read.
[[nodiscard]] http::Response event_stream(
    std::shared_ptr<OpenStream> const& stream, std::chrono::milliseconds heartbeat,
    std::function<std::optional<std::vector<http::Frame>>(http::Stream::Due)> next);

}  // namespace vfmgr
