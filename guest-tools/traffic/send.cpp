// SPDX-License-Identifier: Apache-2.0
#include <sys/prctl.h>

#include <algorithm>
#include <array>

#include "api/os/descriptor.hpp"
#include "api/os/random.hpp"
#include "api/types/json.hpp"
#include "guest-tools/traffic/control.hpp"
#include "guest-tools/traffic/pacer.hpp"
#include "guest-tools/traffic/sender.hpp"
#include "guest-tools/traffic/tally.hpp"

namespace vfmgr::stream {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds connect_wait{5};
constexpr std::chrono::seconds accept_wait{15};  // the receiver may wait for its RDMA device
constexpr std::chrono::seconds counts_wait{15};

// The run from the first packet to the receiver's counts.
class Sending {
  public:
    Sending(Control& control, Sender& sender, SendOptions const& options)
        : control_(control),
          sender_(sender),
          options_(options),
          start_(Steady::now()),
          pacer_(start_, pace_of(options, sender.packet_bytes())),
          packets_(
              std::min(options.packets.value_or(pacer_.packets_in(options.time)), sequence_max)) {}

    Result<Summary> run(int stop) {
        while (!over()) {
            VFMGR_TRY(auto const next, await_turn(stop));
            if (next == Next::end) break;
            if (next == Next::listen) {
                // Only a receiver that ends early sends anything now.
                VFMGR_TRY(auto const line, control_.line_now());
                if (line) return read_summary(*line);
                continue;
            }
            auto const count = std::min<std::uint64_t>(options_.chunk, packets_ - sent_);
            if (auto const put = sender_.send(sent_, count); !put) return instead_of(put.error());
            last_at_ = Steady::now();
            pacer_.count_sent(sent_, count, last_at_);
            sent_ += count;
        }
        return finish();
    }

  private:
    enum class Next { send, listen, end };

    static Pace pace_of(SendOptions const& options, std::uint32_t packet_bytes) {
        if (options.packets_per_second) return {1, *options.packets_per_second};
        return {std::uint64_t{packet_bytes} * 8, options.bits_per_second};
    }

    // Checks the clock as well: a sender that can't keep the pace ends in time.
    [[nodiscard]] bool over() const {
        return sent_ == packets_ || (!options_.packets && Steady::now() >= start_ + options_.time);
    }

    // A receiver that has ended reports so before its kernel refuses packets.
    Result<Summary> instead_of(Error const& error) {
        auto const line = control_.line_now();
        return line && *line ? read_summary(**line) : fail(error);
    }

    // Waits until the chunk is due, the receiver sends something, or the user stops the test.
    Result<Next> await_turn(int stop) {
        std::array const watched{control_.fd(), stop};
        VFMGR_TRY(auto const ready, await_readable(watched, pacer_.due(sent_)));
        if (ready == Readiness::deadline_passed) return Next::send;
        return is_readable(stop) ? Next::end : Next::listen;
    }

    Result<Summary> finish() {
        VFMGR_CHECK(sender_.flush());
        Ending ending;
        ending.packets = sent_;
        ending.microseconds = static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::microseconds>(last_at_ - start_).count());
        ending.lateness = pacer_.lateness();
        ending.filtered = sender_.filtered();
        auto const until = Steady::now() + counts_wait;
        VFMGR_TRY(auto const line, control_.ask(to_json_text(ending), until, -1));
        return read_summary(line);
    }

    Control& control_;
    Sender& sender_;
    SendOptions const& options_;
    Deadline const start_;
    Pacer pacer_;
    std::uint64_t const packets_;  // at most
    std::uint64_t sent_ = 0;
    Deadline last_at_ = start_;
};

}  // namespace

Result<Summary> send(SendOptions const& options, std::function<void(Opening const&)> const& begun,
                     int stop) {
    // A chunk waits for its exact microsecond: otherwise the kernel may be 50 us late.
    ::prctl(PR_SET_TIMERSLACK, 1UL);
    VFMGR_TRY(auto control, connect_to(options, Steady::now() + connect_wait, stop));
    Opening opening;
    opening.run = random_hex(8);
    opening.over = options.over;
    opening.chunk = options.chunk;
    VFMGR_TRY(auto const sender, Sender::open(options, control.local(), run_number(opening.run)));
    opening.packet_bytes = sender->packet_bytes();
    opening.pair = sender->end();
    auto const until = Steady::now() + accept_wait;
    VFMGR_TRY(auto const line, control.ask(to_json_text(opening), until, stop));
    VFMGR_TRY(auto const acceptance, read_acceptance(line, options.over));
    VFMGR_CHECK(sender->aim(acceptance));
    begun(opening);
    return Sending(control, *sender, options).run(stop);
}

}  // namespace vfmgr::stream
