// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/bench.hpp"

#include <time.h>

namespace vfmgr::verify {

Measured measured(char const* name) {
    Measured made;
    made.result.name = name;
    made.result.verdict = Verdict::pass;
    made.result.by = Judge::guest;
    return made;
}

Measured measured_failure(char const* name, Error const& error) {
    auto made = measured(name);
    made.result.verdict = Verdict::fail;
    made.result.detail = detail_with_causes(error);
    made.result.remedy = error.remedy;
    return made;
}

std::uint64_t raw_nanoseconds() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

std::map<std::string, double> rate_figures(std::uint64_t bytes, double seconds) {
    auto const amount = static_cast<double>(bytes);
    return {{"bandwidth_mbps", amount * 8 / 1e6 / seconds},
            {"bandwidth_mib_per_s", amount / (1024.0 * 1024) / seconds},
            {"seconds", seconds}};
}

Result<std::span<ibv_wc>> await(Bench& bench, std::span<ibv_wc> room, std::string_view what) {
    return await(bench.pair.completions(), room, bench.deadline, what);
}

Result<std::span<ibv_wc>> await(CompletionQueue& queue, std::span<ibv_wc> room, Deadline deadline,
                                std::string_view what, unsigned polls) {
    VFMGR_TRY(auto const found, queue.wait(room, deadline, polls));
    VFMGR_CHECK(check_completions(found, what));
    return found;
}

}  // namespace vfmgr::verify
