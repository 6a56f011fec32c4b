// SPDX-License-Identifier: Apache-2.0
// Messages between daemon and worker: one JSON object per line, each way. Values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {

// Beyond a step's deadline, for the way back. A worker that takes longer hangs and is killed.
inline constexpr std::chrono::milliseconds step_grace{3'000};

struct WorkerRequest {
    std::uint64_t id = 0;            // repeated in the answer
    std::optional<KernelStep> step;  // absent: observe the worker's subject
    std::uint64_t milliseconds = 0;  // until the step's deadline
    bool firmware = false;           // read the firmware of its card instead
    bool operator==(WorkerRequest const&) const = default;
};

struct WorkerAnswer {
    std::uint64_t id = 0;
    std::optional<Error> error;        // absent: success
    std::optional<KernelView> view;    // of an observation
    std::vector<std::string> remarks;  // of a step
    std::optional<std::vector<FirmwareCard>> firmware{};
    std::optional<VfCounters> counters{};  // of a step
    bool operator==(WorkerAnswer const&) const = default;
};

// Includes the newline at its end.
[[nodiscard]] std::string to_line(WorkerRequest const& request);
[[nodiscard]] std::string to_line(WorkerAnswer const& answer);
// Parses a line without its newline. invalid_request for anything that to_line() does not make.
[[nodiscard]] Result<WorkerRequest> parse_request(std::string_view line);
[[nodiscard]] Result<WorkerAnswer> parse_answer(std::string_view line);

// Splits a stream into lines.
class Lines {
  public:
    // False when the current line is longer than any message: the stream is then unusable.
    [[nodiscard]] bool add(std::string_view bytes);
    [[nodiscard]] std::optional<std::string> next();

  private:
    std::string bytes_;
    std::size_t searched_ = 0;
};

}  // namespace vfmgr
