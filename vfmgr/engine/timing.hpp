// SPDX-License-Identifier: Apache-2.0
// Measures what an operation's time is spent on. An operation is straight-line code on one thread,
// so its Stopwatch belongs to that thread, and what takes the time need not know whose it is.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/os/handle.hpp"
#include "api/types/operation.hpp"
#include "vfmgr/kernel/kernel.hpp"

namespace vfmgr {

// Spans beyond this are not recorded: an operation's document stays small. The longest one, a
// repair of a thousand VFs, has a few hundred.
inline constexpr std::size_t spans_max = 1000;

class Stopwatch {
  public:
    // Measures on this thread from now on, as of `began`, until it is destroyed. One at a time.
    Stopwatch(Clock const& clock, Deadline began);
    ~Stopwatch();
    Stopwatch(Stopwatch const&) = delete;
    Stopwatch& operator=(Stopwatch const&) = delete;

    // What this thread has measured so far; empty without a Stopwatch.
    [[nodiscard]] static std::vector<Span> spans();

  private:
    friend Held timed(SpanKind kind, std::string what, std::optional<std::string> step);
    Clock const& clock_;
    Deadline const began_;
    std::vector<Span> spans_;
};

// Measures until the returned object is destroyed. Spans of an operation don't overlap: only what
// does not call the rest is measured. `step`: a step's kind.
[[nodiscard]] Held timed(SpanKind kind, std::string what, std::optional<std::string> step = {});

}  // namespace vfmgr
