// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/latency.hpp"

#include <endian.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace vfmgr::verify {
namespace {

constexpr std::size_t samples_max = 2000;
constexpr std::uint64_t warm_up_writes = 16;
constexpr std::uint64_t window_nanoseconds = 1'500'000'000;

struct Stamper {
    Bench& bench;
    RegisteredMemory memory;

    Result<void> write(std::uint64_t number, std::optional<std::uint32_t> notify) {
        auto const value = htole64(number);
        auto const bytes = memory.bytes().first(sizeof value);
        std::memcpy(bytes.data(), &value, sizeof value);
        VFMGR_CHECK(bench.pair.write(number, {{bytes, memory.local_key()},
                                              bench.offer.scratch.address,
                                              bench.offer.scratch.rkey,
                                              notify}));
        std::array<ibv_wc, 1> room{};
        VFMGR_CHECK(await(bench, room, "an 8-byte RDMA write"));
        return {};
    }
};

Result<std::vector<std::uint64_t>> samples(Bench& bench) {
    VFMGR_TRY(auto memory,
              RegisteredMemory::make(bench.domain, 4096, IBV_ACCESS_LOCAL_WRITE, "latency stamp"));
    Stamper stamper{bench, std::move(memory)};
    for (std::uint64_t i = 0; i < warm_up_writes; ++i) VFMGR_CHECK(stamper.write(0, std::nullopt));
    std::vector<std::uint64_t> taken;
    taken.reserve(samples_max);
    auto const start = raw_nanoseconds();
    auto last = start;
    while (taken.size() < samples_max && last - start < window_nanoseconds) {
        VFMGR_CHECK(stamper.write(taken.size() + 1, std::nullopt));
        auto const now = raw_nanoseconds();
        taken.push_back(now - last);
        last = now;
    }
    VFMGR_CHECK(stamper.write(taken.size(), notify_latency));
    return taken;
}

}  // namespace

std::map<std::string, double> summarise(std::vector<std::uint64_t> nanoseconds) {
    if (nanoseconds.empty()) return {};
    std::ranges::sort(nanoseconds);
    auto const count = nanoseconds.size();
    // Nearest rank: the smallest sample that at least this share of all does not exceed.
    auto const at = [&](double share) {
        auto const rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(count)));
        return static_cast<double>(nanoseconds[std::clamp<std::size_t>(rank, 1, count) - 1]) / 1000;
    };
    return {{"min_us", at(0)},
            {"p50_us", at(0.5)},
            {"p90_us", at(0.9)},
            {"p99_us", at(0.99)},
            {"p999_us", at(0.999)},
            {"max_us", at(1)},
            {"samples", static_cast<double>(count)}};
}

Measured write_latency(Bench& bench) {
    auto taken = samples(bench);
    if (!taken) return measured_failure("write_latency", taken.error());
    auto made = measured("write_latency");
    made.result.figures = summarise(std::move(*taken));
    made.result.detail = "8-byte RDMA writes, one outstanding, completion to completion";
    return made;
}

}  // namespace vfmgr::verify
