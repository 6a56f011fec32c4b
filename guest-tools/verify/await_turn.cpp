// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/await_turn.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

namespace vfmgr::verify {
namespace {

using std::chrono::milliseconds;
// Less than the time a host keeps a place in its queue (TurnLimits::patience), minus the request's
// own.
constexpr milliseconds try_again_min{500}, try_again_max{5000};

}  // namespace

Waiting wait_until(Deadline until) {
    Waiting waiting{until};
    waiting.pause = [](milliseconds time) { ::poll(nullptr, 0, static_cast<int>(time.count())); };
    return waiting;
}

std::optional<milliseconds> next_try(Turn const& turn, Waiting const& waiting) {
    if (turn.own && !waiting.for_own) return std::nullopt;
    auto const half = milliseconds(std::chrono::seconds(turn.seconds)) / 2;
    auto const time = std::clamp(half, try_again_min, try_again_max);
    if (waiting.now() + time > waiting.until) return std::nullopt;
    return time;
}

Error gave_up(Turn const& turn) {
    if (turn.own)
        return {Problem::unavailable,
                "this VM already has as many sessions or streams on the host as one VM may",
                "verify fewer VFs at the same time, or one after the other"};
    return {
        Problem::unavailable,
        fmt::format(
            "gave up waiting for a place on the host: position {} in its queue, about {} s left",
            turn.position, turn.seconds),
        "verify again when fewer VMs are being verified"};
}

}  // namespace vfmgr::verify
