// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/gpu_bench.hpp"

#include <fmt/format.h>

#include "guest-tools/gpu/dma_buf.hpp"

namespace vfmgr::guest::gpu {
namespace {

constexpr char const* report_it = "report it, with the version of NVIDIA's driver";

struct Holdings {
    std::size_t descriptors = 0;
    std::uint64_t pinned_bytes = 0;
    std::uint64_t gpu_free_bytes = 0;
};

Result<Holdings> holdings(GpuContext const& context) {
    VFMGR_TRY(auto const free, context.free_bytes());
    return Holdings{open_descriptors(), pinned_bytes(), free};
}

TestResult compare(GpuBench const& bench, char const* what, Holdings const& before,
                   Holdings const& after) {
    constexpr std::uint64_t noticed = 16 << 20;
    auto const lost = before.gpu_free_bytes > after.gpu_free_bytes
                          ? before.gpu_free_bytes - after.gpu_free_bytes
                          : 0;
    auto result =
        passed(fmt::format("{} rounds of {} left as many descriptors and as much memory as before",
                           bench.rounds, what));
    if (after.descriptors != before.descriptors)
        result = descriptors_left(before.descriptors, after.descriptors);
    else if (after.pinned_bytes != before.pinned_bytes)
        result = failed(fmt::format("{} bytes of memory were pinned before, {} afterwards",
                                    before.pinned_bytes, after.pinned_bytes),
                        "report it, with the version of the NIC's driver");
    // Other programs may use the GPU, too: only a loss that grows with the rounds is a leak here.
    else if (lost >= bench.rounds * round_bytes && lost >= noticed)
        result = failed(
            fmt::format("{} of the GPU's memory are gone", bytes_text(lost)),
            "check with nvidia-smi whether another process took them; if none did, report it");
    result.figures = {{"rounds", static_cast<double>(bench.rounds)},
                      {"memory_lost_bytes", static_cast<double>(lost)}};
    return result;
}

}  // namespace

TestResult descriptors_left(std::size_t before, std::size_t after) {
    return failed(fmt::format("{} descriptors were open before, {} afterwards", before, after),
                  report_it);
}

Result<TestResult> in_rounds(GpuBench const& bench, char const* what,
                             std::function<Result<void>()> const& round) {
    VFMGR_CHECK(round());
    VFMGR_TRY(auto const before, holdings(bench.context));
    for (unsigned n = 0; n < bench.rounds; ++n) VFMGR_CHECK(round());
    VFMGR_TRY(auto const after, holdings(bench.context));
    return compare(bench, what, before, after);
}

}  // namespace vfmgr::guest::gpu
