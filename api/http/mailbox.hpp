// SPDX-License-Identifier: Apache-2.0
// Lets other threads reach the io thread. Internal to api/http. Shared by the server and every
// Respond it created; any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "api/http/http.hpp"

namespace vfmgr::http {

// Drops work posted after close(): a Respond may outlive the server.
class Mailbox {
  public:
    using Post = std::function<void(std::function<void()>)>;
    explicit Mailbox(Post post) : post_(std::move(post)) {}
    // False: it was closed, and has dropped the work.
    bool post(std::function<void()> work);
    void close();

  private:
    std::mutex mutex_;
    Post post_;
};

// The first call passes the response to `deliver` on the io thread. If the last copy is destroyed
// without a call, `deliver` gets nullopt.
[[nodiscard]] Respond make_respond(std::shared_ptr<Mailbox> mailbox,
                                   std::function<void(std::optional<Response>)> deliver);

}  // namespace vfmgr::http
