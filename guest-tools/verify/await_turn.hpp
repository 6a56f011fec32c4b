// SPDX-License-Identifier: Apache-2.0
// A place in a host's queue is kept by asking again. Blocking; one thread.
#pragma once

#include <functional>
#include <optional>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"
#include "api/types/turn.hpp"

namespace vfmgr::verify {

// How long a measurement waits for its stream; then it is skipped, and says why.
inline constexpr std::chrono::seconds stream_patience{30};

struct Waiting {
    Deadline until;       // then it gives up
    bool for_own = true;  // also while only the asker's own has to end first
    std::function<Deadline()> now = [] { return std::chrono::steady_clock::now(); };
    // Time is all that is waited for: a host tells nobody that it is free.
    std::function<void(std::chrono::milliseconds)> pause{};
};
[[nodiscard]] Waiting wait_until(Deadline until);

// How long until it is asked again; nothing when that is given up.
[[nodiscard]] std::optional<std::chrono::milliseconds> next_try(Turn const& turn,
                                                                Waiting const& waiting);
// unavailable.
[[nodiscard]] Error gave_up(Turn const& turn);

// Asks until it is its turn, or has an error.
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
