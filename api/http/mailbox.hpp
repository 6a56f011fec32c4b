// SPDX-License-Identifier: Apache-2.0
// How other threads reach the io thread. Internal to api/http. Shared by the server and every
// Respond it gave away; any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "api/http/http.hpp"

namespace vfmgr::http {

// Work posted after close() is dropped: a Respond may outlive the server.
class Mailbox {
  public:
    using Post = std::function<void(std::function<void()>)>;
    explicit Mailbox(Post post) : post_(std::move(post)) {}
    void post(std::function<void()> work);
    void close();

  private:
    std::mutex mutex_;
    Post post_;
};

// On its first call `deliver` gets the response on the io thread; when the last copy goes without a
// call, `deliver` gets nullopt.
[[nodiscard]] Respond make_respond(std::shared_ptr<Mailbox> mailbox,
                                   std::function<void(std::optional<Response>)> deliver);

}  // namespace vfmgr::http
