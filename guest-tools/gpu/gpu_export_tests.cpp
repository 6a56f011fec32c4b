// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "guest-tools/gpu/dma_buf.hpp"
#include "guest-tools/gpu/dma_buf_info.hpp"
#include "guest-tools/gpu/gpu_bench.hpp"

namespace vfmgr::guest::gpu {
namespace {

using std::chrono::steady_clock;

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
                "report it, with the version of NVIDIA's driver");
}

// Exports the whole, and a part that begins and ends within pages.
Result<Exported> export_size(GpuContext const& context, Allocation how, std::uint64_t bytes) {
    VFMGR_TRY(auto const memory, GpuMemory::allocate(context, how, bytes));
    VFMGR_TRY(auto whole, export_once(context, {memory.range().address, bytes}));
    VFMGR_TRY(auto const part, export_once(context, {memory.range().address + 100, bytes - 200}));
    whole.milliseconds = std::max(whole.milliseconds, part.milliseconds);
    return whole;
}

std::optional<TestResult> refused_before(GpuBench const& bench, Allocation how) {
    if (bench.gpu.dma_buf.value_or(0) == 0)
        return not_passed(Verdict::not_applicable,
                          {Problem::unsupported, "the driver offers no DMA-BUF for this GPU", ""});
    if (how == Allocation::vmm && bench.gpu.vmm.value_or(0) == 0)
        return not_passed(Verdict::not_applicable,
                          {Problem::unsupported, "the GPU has no virtual memory management", ""});
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

TestResult test_export(GpuBench const& bench, Allocation how) {
    if (auto const refused = refused_before(bench, how)) return *refused;
    auto const free = bench.context.free_bytes();
    if (!free) return not_passed(Verdict::fail, free.error());
    // The driver opens descriptors of its own the first time.
    auto const first = export_all(bench.context, how, *free);
    if (!first) return not_passed(Verdict::fail, first.error());
    auto const descriptors = open_descriptors();
    auto const again = export_all(bench.context, how, *free);
    if (!again) return not_passed(Verdict::fail, again.error());
    if (auto const now = open_descriptors(); now != descriptors)
        return descriptors_left(descriptors, now);
    auto result = passed(fmt::format(
        "{} to {}, aligned and not, {}", bytes_text(sizes.front()), bytes_text(again->largest),
        again->worst.exporter.empty() ? "by descriptors that are not DMA-BUFs of the kernel"
                                      : "by DMA-BUFs of " + again->worst.exporter));
    result.figures = {{"smallest_bytes", static_cast<double>(sizes.front())},
                      {"largest_bytes", static_cast<double>(again->largest)},
                      {"slowest_ms", again->worst.milliseconds}};
    return result;
}

TestResult test_rounds(GpuBench const& bench) {
    if (auto const refused = refused_before(bench, Allocation::plain)) return *refused;
    return in_rounds(bench, "allocating, exporting and closing", [&]() -> Result<void> {
        VFMGR_CHECK(export_size(bench.context, Allocation::plain, round_bytes));
        return {};
    });
}

// Managed memory must be refused: otherwise it is measured in place of the GPU's memory, as has
// happened to users of perftest.
TestResult test_managed(GpuBench const& bench) {
    if (bench.gpu.managed.value_or(0) == 0)
        return not_passed(Verdict::not_applicable,
                          {Problem::unsupported, "the GPU has no managed memory", ""});
    auto const& cuda = bench.context.cuda();
    constexpr std::size_t bytes = 64 * kibibyte;
    CudaPointer address = 0;
    auto const made = cuda.done("cuMemAllocManaged",
                                cuda.calls.cuMemAllocManaged(&address, bytes, mem_attach_global));
    if (!made) return not_passed(Verdict::skip, made.error());
    auto const exported = export_dma_buf(bench.context, {address, bytes});
    cuda.calls.cuMemFree_v2(address);
    if (!exported && exported.error().problem == Problem::invalid_request)
        return passed(exported.error().detail);
    return failed("managed memory was not refused: " +
                      (exported ? std::string("it was exported") : exported.error().detail),
                  "report it, with the version of NVIDIA's driver");
}

}  // namespace vfmgr::guest::gpu
