// SPDX-License-Identifier: Apache-2.0
// Waits for a place in a host's queue, and keeps it by repeating the request. Blocking; one thread.
#pragma once

#include <functional>
#include <optional>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"
#include "api/types/turn.hpp"

namespace vfmgr::verify {

// A measurement waits this long for its stream; then it is skipped with the reason.
inline constexpr std::chrono::seconds stream_patience{30};

struct Waiting {
    Deadline until;       // it gives up then
    bool for_own = true;  // it also waits for sessions or streams of its own VM
    std::function<Deadline()> now = [] { return std::chrono::steady_clock::now(); };
    // Sleeps between two tries: the host sends no event when a place becomes free.
    std::function<void(std::chrono::milliseconds)> pause{};
};
[[nodiscard]] Waiting wait_until(Deadline until);

// Returns the time until the next try, or nothing when it gives up.
[[nodiscard]] std::optional<std::chrono::milliseconds> next_try(Turn const& turn,
                                                                Waiting const& waiting);
// The error, unavailable, that names the position in the queue and the time left.
[[nodiscard]] Error gave_up(Turn const& turn);

// Repeats the request until the host offers a place or fails.
template <class T>
[[nodiscard]] Result<T> await_turn(std::function<Result<OrTurn<T>>()> const& ask,
                                   Waiting const& waiting) {
    while (true) {
        VFMGR_TRY(auto answer, ask());
        auto const* const turn = std::get_if<Turn>(&answer);
        if (!turn) return std::get<T>(std::move(answer));
        auto const time = next_try(*turn, waiting);
        if (!time) return fail(gave_up(*turn));
        waiting.pause(*time);
    }
}

}  // namespace vfmgr::verify
