// SPDX-License-Identifier: Apache-2.0
// A completion queue with its channel. wait() spins at most 50 us, giving the CPU away, then
// blocks: busy polling starves SoftRoCE, whose work runs on the same CPUs (verification.md, 3.6).
// One thread at a time.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"
#include "guest-tools/verify/handles.hpp"

namespace vfmgr::verify {

class CompletionQueue {
  public:
    [[nodiscard]] static Result<CompletionQueue> make(ibv_context* context, int entries);
    [[nodiscard]] ibv_cq* get() const { return queue_.get(); }
    [[nodiscard]] int fd() const { return channel_->fd; }

    // What is there now, in `room`.
    [[nodiscard]] Result<std::span<ibv_wc>> poll(std::span<ibv_wc> room);
    // At least one; timed_out at the deadline, kernel_refused when the device fails or goes.
    [[nodiscard]] Result<std::span<ibv_wc>> wait(std::span<ibv_wc> room, Deadline deadline);
    // For an event loop: the next completion makes fd() readable; poll() again after arming.
    [[nodiscard]] Result<void> arm();
    // Takes the channel's pending events, without blocking.
    void take_events();

  private:
    CompletionQueue(VerbsChannel channel, VerbsQueue queue)
        : channel_(std::move(channel)), queue_(std::move(queue)) {}
    [[nodiscard]] Result<void> block(Deadline deadline);

    VerbsChannel channel_;  // outlives the queue
    VerbsQueue queue_;
};

// A device's pending asynchronous events; the first one that ends all work, as an Error.
[[nodiscard]] Result<void> check_async(ibv_context* context);

// "transport retry counter exceeded (12)" with what to do about it.
[[nodiscard]] Error completion_error(ibv_wc const& completion, std::string_view what);

}  // namespace vfmgr::verify
