// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <functional>

#include "guest-tools/gpu/dma_buf.hpp"
#include "guest-tools/gpu/gpu_bench.hpp"
#include "vfmgr/rdma/device.hpp"
#include "vfmgr/rdma/faults.hpp"

namespace vfmgr::guest::gpu {
namespace {

using std::chrono::steady_clock;

// --- what a test leaves behind ---

constexpr char const* report_it = "report it, with the version of NVIDIA's driver";

constexpr std::uint64_t round_bytes = 64 << 10;  // of the GPU's memory, in each round

TestResult descriptors_left(std::size_t before, std::size_t after) {
    return failed(fmt::format("{} descriptors were open before, {} afterwards", before, after),
                  report_it);
}

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

// Runs `round` once, because the driver keeps what it allocates first, and then bench.rounds times.
// It allocates and frees round_bytes. Passes when descriptors, pinned memory and the GPU's free
// memory are as before. `what` describes one round.
Result<TestResult> in_rounds(GpuBench const& bench, char const* what,
                             std::function<Result<void>()> const& round) {
    VFMGR_CHECK(round());
    VFMGR_TRY(auto const before, holdings(bench.context));
    for (unsigned n = 0; n < bench.rounds; ++n) VFMGR_CHECK(round());
    VFMGR_TRY(auto const after, holdings(bench.context));
    return compare(bench, what, before, after);
}

// --- exports ---

constexpr std::uint64_t kibibyte = 1024, mebibyte = kibibyte << 10U, gibibyte = mebibyte << 10U;
constexpr std::uint64_t left_free = 256 * mebibyte;
constexpr std::array sizes{4 * kibibyte, 64 * kibibyte, 2 * mebibyte, 64 * mebibyte,
                           1 * gibibyte, 4 * gibibyte,  16 * gibibyte};

struct Exported {
    double milliseconds = 0;
    std::string exporter;  // empty: not a DMA-BUF
};

// Checks the export as a NIC's driver would use it: whole host pages, of the exported length, with
// the requested range inside.
Result<Exported> export_once(GpuContext const& context, GpuRange requested) {
    auto const page = host_page_bytes();
    auto const begin = steady_clock::now();
    VFMGR_TRY(auto const made, export_dma_buf(context, requested));
    std::chrono::duration<double, std::milli> const took = steady_clock::now() - begin;
    auto const& pages = made.range.pages;
    bool const aligned = pages.address % page == 0 && pages.bytes % page == 0;
    bool const inside = pages.address + made.range.offset == requested.address &&
                        made.range.offset + requested.bytes <= pages.bytes;
    auto const length = ::lseek(made.descriptor.get(), 0, SEEK_END);
    if (aligned && inside && std::cmp_equal(length, pages.bytes))
        return Exported{took.count(), exporter_of(made.descriptor.get()).value_or("")};
    return fail(Problem::kernel_refused,
                fmt::format("the DMA-BUF has {} bytes, but {} were exported", length, pages.bytes),
                report_it);
}

// Exports the whole, and a part that begins and ends within pages.
Result<Exported> export_size(GpuContext const& context, Allocation how, std::uint64_t bytes) {
    VFMGR_TRY(auto const memory, GpuBuffer::allocate(context, how, bytes));
    VFMGR_TRY(auto whole, export_once(context, {memory.range().address, bytes}));
    VFMGR_TRY(auto const part, export_once(context, {memory.range().address + 100, bytes - 200}));
    whole.milliseconds = std::max(whole.milliseconds, part.milliseconds);
    return whole;
}

std::optional<TestResult> refused_before(GpuBench const& bench, Allocation how) {
    if (!bench.gpu.dma_buf.value_or(false))
        return not_applicable("the driver offers no DMA-BUF for this GPU");
    if (how == Allocation::vmm && !bench.gpu.vmm)
        return not_applicable("the GPU has no virtual memory management");
    return std::nullopt;
}

struct AllExported {
    Exported worst;
    std::uint64_t largest = 0;
};

// Exports each size that fits.
Result<AllExported> export_all(GpuContext const& context, Allocation how, std::uint64_t free) {
    AllExported all;
    for (auto const bytes : sizes) {
        if (all.largest != 0 && bytes + left_free > free) break;
        auto exported = export_size(context, how, bytes);
        if (!exported) {
            auto& detail = exported.error().detail;
            detail = fmt::format("{}: {}", bytes_text(bytes), detail);
            return fail(std::move(exported.error()));
        }
        all.worst.milliseconds = std::max(all.worst.milliseconds, exported->milliseconds);
        all.worst.exporter = exported->exporter;
        all.largest = bytes;
    }
    return all;
}

}  // namespace

Result<TestResult> test_export(GpuBench const& bench, Allocation how) {
    if (auto const refused = refused_before(bench, how)) return *refused;
    VFMGR_TRY(auto const free, bench.context.free_bytes());
    // The driver opens descriptors of its own the first time.
    VFMGR_CHECK(export_all(bench.context, how, free));
    auto const descriptors = open_descriptors();
    VFMGR_TRY(auto const again, export_all(bench.context, how, free));
    if (auto const now = open_descriptors(); now != descriptors)
        return descriptors_left(descriptors, now);
    auto result = passed(fmt::format(
        "{} to {}, aligned and not, {}", bytes_text(sizes.front()), bytes_text(again.largest),
        again.worst.exporter.empty() ? "by descriptors that are not DMA-BUFs of the kernel"
                                     : "by DMA-BUFs of " + again.worst.exporter));
    result.figures = {{"smallest_bytes", static_cast<double>(sizes.front())},
                      {"largest_bytes", static_cast<double>(again.largest)},
                      {"slowest_ms", again.worst.milliseconds}};
    return result;
}

Result<TestResult> test_rounds(GpuBench const& bench) {
    if (auto const refused = refused_before(bench, Allocation::plain)) return *refused;
    return in_rounds(bench, "allocating, exporting and closing", [&]() -> Result<void> {
        VFMGR_CHECK(export_size(bench.context, Allocation::plain, round_bytes));
        return {};
    });
}

// Managed memory must be refused: otherwise it is measured in place of the GPU's memory, as has
// happened to users of perftest.
Result<TestResult> test_managed(GpuBench const& bench) {
    if (!bench.gpu.managed) return not_applicable("the GPU has no managed memory");
    auto const& cuda = bench.context.cuda();
    constexpr std::size_t bytes = 64 * kibibyte;
    CudaPointer address = 0;
    auto const made = cuda.run(cuda.calls.cuMemAllocManaged, &address, bytes, mem_attach_global);
    if (!made) return not_passed(Verdict::skip, made.error());
    auto const exported = export_dma_buf(bench.context, {address, bytes});
    cuda.calls.cuMemFree_v2(address);
    if (!exported && exported.error().problem == Problem::invalid_request)
        return passed(exported.error().detail);
    return failed("managed memory was not refused: " +
                      (exported ? std::string("it was exported") : exported.error().detail),
                  report_it);
}

// The test "registration": whether the RDMA devices of this machine register the GPU's memory, and
// release it again. Only a transfer proves that it works (gpudirect.cpp).

namespace {

constexpr std::array registered_sizes{std::uint64_t{4} << 10, round_bytes, std::uint64_t{2} << 20,
                                      std::uint64_t{32} << 20};
constexpr int nic_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

constexpr std::array nic_routes{Route::dma_buf, Route::dma_buf_vmm, Route::peermem};

// What one device reported.
struct Asked {
    std::string text;
    bool software = false;
    bool registers = false;
    std::optional<TestResult> leak;  // of the first route that has one
    std::optional<Error> refusal;    // of the first route that has one
};

Result<void> take(GpuBench const& bench, ibv_pd* pd, Route route, std::uint64_t bytes) {
    VFMGR_CHECK(GpuBuffer::allocate(bench.context, route, pd, bytes, nic_access));
    return {};
}

Result<void> take_all(GpuBench const& bench, ibv_pd* pd, Route route) {
    for (auto const bytes : registered_sizes) VFMGR_CHECK(take(bench, pd, route, bytes));
    return {};
}

void ask(GpuBench const& bench, ibv_pd* pd, Asked& asked) {
    std::string taken, refused;
    for (auto const route : nic_routes) {
        // Skips a route that would be refused for the same reason.
        if (route == Route::dma_buf_vmm && (!bench.gpu.vmm || taken.empty())) continue;
        auto const done = take_all(bench, pd, route);
        if (!done) {
            refused += fmt::format(", not by {}: {}", verify::route_text(route),
                                   detail_with_causes(done.error()));
            if (!asked.refusal) asked.refusal = done.error();
            continue;
        }
        asked.registers = true;
        taken += fmt::format("{}by {}", taken.empty() ? "" : ", ", verify::route_text(route));
        auto const rounds = or_failed(in_rounds(bench, "allocating, registering and freeing", [&] {
            return take(bench, pd, route, round_bytes);
        }));
        if (rounds.verdict != Verdict::pass && !asked.leak) asked.leak = rounds;
    }
    asked.text += taken + (taken.empty() ? refused.substr(2) : refused);
}

Asked ask(GpuBench const& bench, ibv_device* device) {
    Asked asked;
    asked.text = fmt::format("{}: ", device->name);
    verify::VerbsContext const context(ibv_open_device(device));
    verify::VerbsPd const pd(context ? ibv_alloc_pd(context.get()) : nullptr);
    ibv_device_attr limits{};
    if (!pd || ibv_query_device(context.get(), &limits) != 0) {
        asked.refusal = Error{
            Problem::kernel_refused, fmt::format("it can't be opened: {}", std::strerror(errno)),
            "run it as root, or lift the limit of locked memory: ulimit -l unlimited"};
        asked.text += asked.refusal->detail;
        return asked;
    }
    asked.software = verify::is_software(limits);
    ask(bench, pd.get(), asked);
    return asked;
}

TestResult conclude(GpuBench const& bench, std::vector<Asked> const& all) {
    bool registers = false, hardware = false;
    std::string text;
    for (auto const& asked : all) {
        if (asked.leak) {
            auto leak = *asked.leak;
            leak.detail = asked.text + ": " + leak.detail;
            return leak;
        }
        registers = registers || asked.registers;
        hardware = hardware || !asked.software;
        text += (text.empty() ? "" : "; ") + asked.text;
    }
    if (registers) {
        auto result = passed(fmt::format("{}; {} to {}, {} rounds left nothing behind", text,
                                         bytes_text(registered_sizes.front()),
                                         bytes_text(registered_sizes.back()), bench.rounds));
        result.figures = {{"rounds", static_cast<double>(bench.rounds)}};
        return result;
    }
    if (!hardware)
        return not_passed(Verdict::skip,
                          {Problem::unsupported, "software RDMA devices can't reach a GPU; " + text,
                           "run it on a machine with the NIC or its VF"});
    return failed(text, all.front().refusal ? all.front().refusal->remedy : "");
}

}  // namespace

TestResult test_registration(GpuBench const& bench) {
    int count = 0;
    verify::VerbsDevices const devices(ibv_get_device_list(&count));
    if (!devices || count == 0)
        return not_passed(Verdict::skip,
                          {Problem::not_found, "no NIC was tested: this machine has no RDMA device",
                           "run it on a machine with the NIC or its VF, with its driver loaded"});
    std::vector<Asked> all;
    for (int n = 0; n < count; ++n) all.push_back(ask(bench, devices.get()[n]));
    return conclude(bench, all);
}

}  // namespace vfmgr::guest::gpu
