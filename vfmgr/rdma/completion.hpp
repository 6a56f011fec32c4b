// SPDX-License-Identifier: Apache-2.0
// A completion queue with its channel. wait() polls for a few microseconds, then blocks: busy
// polling starves SoftRoCE, whose work runs on the same CPUs (RDMA.md#polling). One thread at a
// time.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"
#include "vfmgr/rdma/device.hpp"

namespace vfmgr::verify {

// How often wait() polls before it blocks. For latency tests the guest polls for long: to sleep and
// wake costs a VM more than a round trip. The host does so on hardware only, because SoftRoCE needs
// the CPUs that polling takes. (In the lab, p50 of sends in us, medians of 7 rounds: guest polls,
// host waits 860; both poll 1160; both wait 1140; ib_send_lat, which polls, 1220.)
inline constexpr unsigned polls_by_default = 128;
inline constexpr unsigned polls_for_latency = 8192;
inline constexpr unsigned polls_of_a_software_echo = 4;

class CompletionQueue {
  public:
    [[nodiscard]] static Result<CompletionQueue> make(ibv_context* context, int entries);
    [[nodiscard]] ibv_cq* get() const { return queue_.get(); }
    [[nodiscard]] int fd() const { return channel_->fd; }

    // Takes the completions that are there, into `room`.
    [[nodiscard]] Result<std::span<ibv_wc>> poll(std::span<ibv_wc> room);
    // Returns at least one; timed_out at the deadline, kernel_refused when the device fails or
    // goes.
    [[nodiscard]] Result<std::span<ibv_wc>> wait(std::span<ibv_wc> room, Deadline deadline,
                                                 unsigned polls = polls_by_default);
    // Takes completions, good and bad, until `count` with that id have come, or the deadline.
    void drain(std::uint64_t id, unsigned count, Deadline deadline);
    // For an event loop: the next completion makes fd() readable. Call poll() once more after
    // arming.
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

// Takes a device's pending asynchronous events. Returns the first one that ends all work, as an
// Error.
[[nodiscard]] Result<void> check_async(ibv_context* context);

// Returns the first unsuccessful one as an Error that names `what`.
[[nodiscard]] Result<void> check_completions(std::span<ibv_wc const> completions,
                                             std::string_view what);

// "transport retry counter exceeded (12)", with a remedy.
[[nodiscard]] Error completion_error(ibv_wc const& completion, std::string_view what);

// Polls memory that a NIC writes, for which no event is raised, or a completion queue before
// blocking on it. One thread.

// Loads the byte anew on each call, ordered before all later loads.
[[nodiscard]] inline std::uint8_t read_byte(std::byte const& byte) {
    return __atomic_load_n(reinterpret_cast<std::uint8_t const*>(&byte), __ATOMIC_ACQUIRE);
}

// After some 50 us it yields the CPU between two polls: SoftRoCE's work may need this very CPU
// (RDMA.md#polling). It counts polls, because reading a clock may cost more than a poll: in a VM
// whose clock is an emulated HPET, each reading stops the VM.
class Spin {
  public:
    // Call after a poll that found nothing. Returns false when the deadline has passed.
    [[nodiscard]] bool again(Deadline deadline) {
        if (++polls_ > busy_polls) ::sched_yield();
        return polls_ % polls_by_clock != 0 || std::chrono::steady_clock::now() < deadline;
    }
    void found() { polls_ = 0; }

  private:
    static constexpr unsigned busy_polls = 1024;
    static constexpr unsigned polls_by_clock = 256;
    unsigned polls_ = 0;
};

}  // namespace vfmgr::verify
