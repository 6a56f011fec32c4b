// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/memory_regions.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace vfmgr::verify {
namespace {

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t asked_bytes_max = 256 * mib;
constexpr std::uint64_t needed_bytes = 64 * mib;
constexpr std::size_t mrs_requested = 256;
constexpr std::size_t small_bytes = 4096;

// MemAvailable of /proc/meminfo, in bytes; 0 if it is missing.
std::uint64_t available_memory() {
    std::ifstream file("/proc/meminfo");
    std::string name;
    std::uint64_t kib = 0;
    for (std::string unit; file >> name >> kib; std::getline(file, unit))
        if (name == "MemAvailable:") return kib * 1024;
    return 0;
}

// Proves that the MR works: reads the host's message into its end.
Result<void> read_into(GuestStream& stream, RegisteredMemory const& mr, Deadline deadline) {
    auto const bytes = mr.bytes().last(stream.size().message_bytes);
    VFMGR_CHECK(stream.pairs().front().read(
        0, {{bytes, mr.local_key()}, stream.remote_address(0), stream.remote_key()}));
    std::array<ibv_wc, 1> room{};
    VFMGR_TRY(auto const found, await(stream.queue(), room, deadline, "a read into the MR"));
    static_cast<void>(found);
    return {};
}

struct Largest {
    std::uint64_t bytes = 0;
    std::optional<Error> refused;  // why twice as many were refused
};

Largest find_largest(GuestStream& stream, std::uint64_t bytes_max, Deadline deadline) {
    Largest largest;
    for (auto bytes = mib; bytes <= bytes_max; bytes *= 2) {
        auto const mr = RegisteredMemory::make(stream.pd(), bytes, IBV_ACCESS_LOCAL_WRITE, "MR");
        auto used = mr ? read_into(stream, *mr, deadline) : fail(mr.error());
        if (!used) {
            largest.refused = used.error();
            break;
        }
        largest.bytes = bytes;
    }
    return largest;
}

std::size_t count_mrs(GuestStream const& stream) {
    std::vector<RegisteredMemory> mrs;
    while (mrs.size() < mrs_requested) {
        auto mr = RegisteredMemory::make(stream.pd(), small_bytes, IBV_ACCESS_LOCAL_WRITE, "MR");
        if (!mr) break;
        mrs.push_back(std::move(*mr));
    }
    return mrs.size();
}

void add_limits(std::map<std::string, double>& figures, ibv_pd* pd) {
    rlimit locked{};
    if (::getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY)
        figures["locked_limit_bytes"] = static_cast<double>(locked.rlim_cur);
    ibv_device_attr device{};
    if (ibv_query_device(pd->context, &device) != 0) return;
    // SoftRoCE reports ~0: no limit.
    if (device.max_mr_size < (std::uint64_t{1} << 62))
        figures["device_region_bytes_max"] = static_cast<double>(device.max_mr_size);
    figures["device_regions_max"] = device.max_mr;
}

}  // namespace

Measured memory_regions(GuestStream& stream, Load const&, Deadline deadline) {
    auto const bytes_max = std::min(asked_bytes_max, available_memory() / 2);
    auto const largest = find_largest(stream, bytes_max, deadline);
    auto made = measured("memory_regions");
    auto& figures = made.result.figures;
    add_limits(figures, stream.pd());
    figures["largest_bytes"] = static_cast<double>(largest.bytes);
    figures["regions"] = static_cast<double>(count_mrs(stream));
    made.result.detail =
        fmt::format("one MR of {} MiB; {} MRs of 4 KiB", largest.bytes / mib, figures["regions"]);
    if (!largest.refused) return made;
    made.result.remedy = largest.refused->remedy;
    made.result.detail = detail_with_causes(*largest.refused);
    // Fails only for memory that is free: sizes beyond half of it are not tried.
    if (largest.bytes < needed_bytes) made.result.verdict = Verdict::fail;
    return made;
}

}  // namespace vfmgr::verify
