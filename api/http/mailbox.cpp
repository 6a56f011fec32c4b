// SPDX-License-Identifier: Apache-2.0
#include "api/http/mailbox.hpp"

#include <atomic>

namespace vfmgr::http {
namespace {

// State shared by all copies of one Respond.
class Answer {
  public:
    Answer(std::shared_ptr<Mailbox> mailbox, std::function<void(std::optional<Response>)> deliver)
        : mailbox_(std::move(mailbox)), deliver_(std::move(deliver)) {}
    Answer(Answer const&) = delete;
    Answer& operator=(Answer const&) = delete;
    ~Answer() { give(std::nullopt); }

    void give(std::optional<Response> response) {
        if (given_.exchange(true)) return;
        mailbox_->post([deliver = std::move(deliver_), response = std::move(response)]() mutable {
            deliver(std::move(response));
        });
    }

  private:
    std::shared_ptr<Mailbox> mailbox_;
    std::function<void(std::optional<Response>)> deliver_;
    std::atomic<bool> given_{false};
};

}  // namespace

bool Mailbox::post(std::function<void()> work) {
    std::lock_guard const lock(mutex_);
    if (!post_) return false;
    post_(std::move(work));
    return true;
}

void Mailbox::close() {
    std::lock_guard const lock(mutex_);
    post_ = nullptr;
}

Respond make_respond(std::shared_ptr<Mailbox> mailbox,
                     std::function<void(std::optional<Response>)> deliver) {
    auto answer = std::make_shared<Answer>(std::move(mailbox), std::move(deliver));
    return [answer](Response response) { answer->give(std::move(response)); };
}

}  // namespace vfmgr::http
