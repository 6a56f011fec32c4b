// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/gpu_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "guest-tools/gpu/all_reduce.hpp"
#include "guest-tools/gpu/gpu_bench.hpp"

namespace vfmgr::guest::gpu {
namespace {

constexpr std::array names{"export_plain", "export_vmm", "export_rounds", "managed",
                           "sync_memops",  "flush",      "registration",  "payload_plain",
                           "payload_vmm",  "damage",     "rate",          "all_reduce"};

Result<TestResult> test_sync_memops(GpuBench const& bench) {
    // Plain memory has the attribute set: allocating it sets it, or fails.
    VFMGR_CHECK(GpuBuffer::allocate(bench.context, Allocation::plain, 1));
    if (bench.context.syncs_all())
        return passed("set on plain memory, and on the context for virtual memory");
    auto result =
        passed("set on plain memory only: this driver has no cuCtxSetFlags for other memory");
    result.remedy = "for virtual memory (cuMemCreate), install a driver of CUDA 12.1 or newer";
    return result;
}

Result<TestResult> test_flush(GpuBench const& bench) {
    auto const& cuda = bench.context.cuda();
    bool const needed = needs_flush(bench.gpu);
    bool const offered = offers_flush(cuda, bench.gpu);
    if (!offered && needed)
        return not_passed(Verdict::skip,
                          {Problem::unsupported,
                           "the driver reports no order of a NIC's writes and offers no flush",
                           "install a newer NVIDIA driver; until then read back over the NIC what "
                           "it wrote, before the GPU uses it"});
    if (!offered) return passed("no flush is offered, and none is needed");
    VFMGR_CHECK(flush_writes(cuda));
    return passed(needed
                      ? "a flush is needed after each completion, and it works"
                      : "a flush works but is not needed: a NIC's writes are in order for the GPU");
}

std::uint64_t bytes_of(GpuTestOptions const& options, std::uint64_t free) {
    constexpr std::uint64_t usual = std::uint64_t{1} << 30U, least = 4096;
    auto const expected = options.bytes.value_or(std::min(usual, free / 4));
    return std::max(expected, least) / verify::payload_chunk_bytes * verify::payload_chunk_bytes;
}

class Run {
  public:
    Run(GpuTestReport& report, OnGpuTest const& on_test) : report_(report), on_test_(on_test) {}
    void take(Result<TestResult> tested) {
        auto result = or_failed(std::move(tested));
        result.name = names.at(report_.tests.size());
        result.by = Judge::guest;
        if (on_test_) on_test_(result);
        report_.tests.push_back(std::move(result));
    }
    // Records all remaining tests of this GPU as not passed.
    void give_up(Verdict verdict, Error const& error) {
        while (report_.tests.size() + 1 < names.size()) take(not_passed(verdict, error));
    }

  private:
    GpuTestReport& report_;
    OnGpuTest const& on_test_;
};

Result<void> run_all(Cuda const& cuda, CudaGpu const& gpu, GpuTestOptions const& options,
                     Run& run) {
    VFMGR_TRY(auto const context, GpuContext::open(cuda, gpu.device));
    VFMGR_TRY(auto const free, context.free_bytes());
    GpuBench const bench{context, gpu, bytes_of(options, free), options.rounds};
    run.take(test_export(bench, Allocation::plain));
    run.take(test_export(bench, Allocation::vmm));
    run.take(test_rounds(bench));
    run.take(test_managed(bench));
    run.take(test_sync_memops(bench));
    run.take(test_flush(bench));
    run.take(test_registration(bench));
    VFMGR_TRY(auto const kernels, GpuPayload::load(context));
    run.take(test_payload(bench, kernels, Allocation::plain));
    run.take(test_payload(bench, kernels, Allocation::vmm));
    run.take(test_damage(bench, kernels));
    run.take(test_rate(bench, kernels));
    return {};
}

// Tests what several GPUs do together: the test belongs to no single GPU, and runs whatever the
// tested GPU offers.
TestResult test_clique(Cuda const& cuda, GpuTestOptions const& options) {
    AllReduceOrder order;
    order.bytes_max = std::min(order.bytes_max, options.bytes.value_or(order.bytes_max));
    return test_all_reduce(cuda, order);
}

Verdict verdict_of(std::vector<TestResult> const& tests, bool offered) {
    auto const any = [&](Verdict verdict) {
        return std::ranges::any_of(tests, [&](auto const& one) { return one.verdict == verdict; });
    };
    if (any(Verdict::fail)) return Verdict::fail;
    // NCCL without GPUDirect RDMA proves nothing about GPUDirect RDMA.
    if (!offered) return Verdict::not_applicable;
    if (any(Verdict::pass)) return Verdict::pass;
    return any(Verdict::skip) ? Verdict::skip : Verdict::not_applicable;
}

}  // namespace

TestResult passed(std::string detail) {
    TestResult result;
    result.verdict = Verdict::pass;
    result.detail = std::move(detail);
    return result;
}

TestResult not_passed(Verdict verdict, Error const& error) {
    TestResult result;
    result.verdict = verdict;
    result.detail = detail_with_causes(error);
    result.remedy = error.remedy;
    return result;
}

TestResult failed(std::string detail, std::string remedy) {
    return not_passed(Verdict::fail, {Problem::internal, std::move(detail), std::move(remedy)});
}

TestResult not_applicable(std::string detail) {
    return not_passed(Verdict::not_applicable, {Problem::unsupported, std::move(detail), ""});
}

TestResult or_failed(Result<TestResult> result) {
    return result ? std::move(*result) : not_passed(Verdict::fail, result.error());
}

std::string bytes_text(std::uint64_t bytes) {
    constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    while (bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < units.size()) {
        bytes /= 1024;
        ++unit;
    }
    return fmt::format("{} {}", bytes, units.at(unit));
}

GpuTestReport test_gpu(Cuda const& cuda, CudaGpu const& gpu, GpuInfo const& info,
                       GpuTestOptions const& options, OnGpuTest const& on_test) {
    GpuTestReport report;
    report.gpu = info;
    Run run(report, on_test);
    bool const offered = offers_gpudirect(gpu);
    if (!offered)
        run.give_up(Verdict::not_applicable, {Problem::unsupported, info.detail, info.remedy});
    else if (auto const done = run_all(cuda, gpu, options, run); !done)
        run.give_up(Verdict::fail, done.error());
    run.take(test_clique(cuda, options));
    report.verdict = verdict_of(report.tests, offered);
    return report;
}

}  // namespace vfmgr::guest::gpu
