// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/stream/send.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "api/types/event.hpp"
#include "api/types/json.hpp"
#include "guest-tools/stream/control.hpp"
#include "guest-tools/stream/pacer.hpp"
#include "guest-tools/stream/sequence.hpp"
#include "guest-tools/stream/sink.hpp"
#include "guest-tools/verify/random.hpp"

namespace vfmgr::stream {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds connect_wait{5};
constexpr std::chrono::seconds accept_wait{15};  // the receiver may wait for its RDMA device
constexpr std::chrono::seconds counts_wait{15};

// From the first packet to the receiver's counts.
class Sending {
  public:
    Sending(Control& control, Sink& sink, SendWish const& wish)
        : control_(control),
          sink_(sink),
          wish_(wish),
          start_(Steady::now()),
          pacer_(start_, pace_of(wish, sink.packet_bytes())),
          packets_(std::min(wish.packets.value_or(pacer_.packets_in(wish.time)), sequence_max)) {}

    Result<Summary> run(int stop) {
        while (!over()) {
            VFMGR_TRY(auto const next, await_turn(stop));
            if (next == Next::end) break;
            if (next == Next::listen) {
                // Only one that ends early says anything now.
                VFMGR_TRY(auto const line, control_.line_now());
                if (line) return read_summary(*line);
                continue;
            }
            auto const count = std::min<std::uint64_t>(wish_.chunk, packets_ - sent_);
            if (auto const put = sink_.send(sent_, count); !put) return instead_of(put.error());
            last_at_ = Steady::now();
            pacer_.handed_over(sent_, count, last_at_);
            sent_ += count;
        }
        return finish();
    }

  private:
    enum class Next { send, listen, end };

    static Pace pace_of(SendWish const& wish, std::uint32_t packet_bytes) {
        if (wish.packets_per_second) return {1, *wish.packets_per_second};
        return {std::uint64_t{packet_bytes} * 8, wish.bits_per_second};
    }

    // By the clock as well: a sender that can't keep the pace ends in time.
    [[nodiscard]] bool over() const {
        return sent_ == packets_ || (!wish_.packets && Steady::now() >= start_ + wish_.time);
    }

    // A receiver that has ended says so before its kernel refuses packets.
    Result<Summary> instead_of(Error const& error) {
        auto const line = control_.line_now();
        return line && *line ? read_summary(**line) : fail(error);
    }

    // Until the chunk is due, the receiver says something, or somebody stops it.
    Result<Next> await_turn(int stop) {
        std::vector<int> watched{control_.fd()};
        if (stop >= 0) watched.push_back(stop);
        VFMGR_TRY(auto const ready, await_readable(watched, pacer_.due(sent_)));
        if (ready == Readiness::deadline_passed) return Next::send;
        return is_readable(stop) ? Next::end : Next::listen;
    }

    Result<Summary> finish() {
        VFMGR_CHECK(sink_.flush());
        Ending ending;
        ending.packets = sent_;
        ending.microseconds = static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::microseconds>(last_at_ - start_).count());
        ending.lateness = pacer_.lateness();
        ending.filtered = sink_.filtered();
        auto const until = Steady::now() + counts_wait;
        VFMGR_CHECK(control_.say(to_json_text(nlohmann::json(ending)), until));
        VFMGR_TRY(auto const line, control_.line(until, -1));
        return read_summary(line);
    }

    Control& control_;
    Sink& sink_;
    SendWish const& wish_;
    Deadline const start_;
    Pacer pacer_;
    std::uint64_t const packets_;  // at most
    std::uint64_t sent_ = 0;
    Deadline last_at_ = start_;
};

}  // namespace

Result<Summary> send(SendWish const& wish, std::function<void(Opening const&)> const& begun,
                     int stop) {
    // A chunk waits for its microsecond: the kernel may else be 50 us late.
    ::prctl(PR_SET_TIMERSLACK, 1UL);
    VFMGR_TRY(auto control,
              connect_to({wish.to, wish.port, wish.local}, Steady::now() + connect_wait, stop));
    Opening opening;
    opening.run = verify::random_hex(8);
    opening.over = wish.over;
    opening.chunk = wish.chunk;
    VFMGR_TRY(auto sink, Sink::open({wish.over, control.local(), wish.to, wish.packet_bytes,
                                     wish.chunk, run_number(opening.run)}));
    opening.packet_bytes = sink.packet_bytes();
    opening.pair = sink.end();
    auto const until = Steady::now() + accept_wait;
    VFMGR_CHECK(control.say(to_json_text(nlohmann::json(opening)), until));
    VFMGR_TRY(auto const line, control.line(until, stop));
    VFMGR_TRY(auto const acceptance, read_acceptance(line, wish.over));
    VFMGR_CHECK(sink.aim(acceptance));
    if (begun) begun(opening);
    return Sending(control, sink, wish).run(stop);
}

}  // namespace vfmgr::stream
