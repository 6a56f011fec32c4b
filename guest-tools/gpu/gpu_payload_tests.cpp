// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "api/os/random.hpp"
#include "guest-tools/gpu/gpu_bench.hpp"

namespace vfmgr::guest::gpu {
namespace {

using verify::Payload;
using verify::payload_chunk_bytes;
using verify::poison_byte;

constexpr auto broken_memory =
    "check the GPU's memory and its driver, one of which is at fault: nvidia-smi -q -d ECC; dmesg "
    "| grep NVRM";
constexpr auto blind = "report it: the check on the GPU misses errors";

Chunks whole(std::uint64_t bytes) {
    return {0, bytes / payload_chunk_bytes};
}

// Fails when good memory is found bad, or bad memory good.
Result<void> expect(bool promise, std::string detail, char const* remedy) {
    if (promise) return {};
    return fail(Problem::internal, std::move(detail), remedy);
}

std::string wrong_text(GpuCheck const& found) {
    return fmt::format("{} of {} chunks are wrong, the first: {}", found.chunks_wrong, found.chunks,
                       found.detail);
}

Result<void> fill_well(GpuPayload const& kernels, Payload const& payload, GpuBuffer const& memory,
                       Chunks chunks) {
    VFMGR_CHECK(kernels.fill(payload, memory, chunks));
    VFMGR_TRY(auto const found, kernels.check(payload, memory, chunks));
    return expect(found.chunks_wrong == 0, wrong_text(found), broken_memory);
}

// Checks both ends of the memory on the host, as a second judge.
Result<void> check_on_host(Payload const& payload, GpuBuffer const& memory, std::uint64_t bytes) {
    constexpr std::uint64_t sample_max = 1U << 20U;
    std::vector<std::byte> sample(std::min(sample_max, bytes));
    for (auto const offset : {std::uint64_t{0}, bytes - sample.size()}) {
        VFMGR_CHECK(memory.read(offset, sample));
        auto const found = verify::check(payload, offset, sample);
        VFMGR_CHECK(expect(found.mismatches == 0,
                           "the host found what the GPU missed: " + found.detail, blind));
    }
    return {};
}

Result<void> prove_payload(GpuBench const& bench, GpuPayload const& kernels,
                           GpuBuffer const& memory) {
    auto const chunks = whole(bench.bytes);
    auto const old = Payload::secret(1);
    Payload const fresh{old.key, 2};
    VFMGR_CHECK(memory.set(poison_byte, bench.bytes));
    VFMGR_TRY(auto const poisoned, kernels.check(old, memory, chunks));
    VFMGR_CHECK(expect(
        poisoned.chunks_wrong == chunks.count && poisoned.detail == "chunk 0 was never written",
        fmt::format("{1} of {0} chunks that were never written were found", chunks.count,
                    poisoned.chunks_wrong),
        blind));
    VFMGR_CHECK(fill_well(kernels, old, memory, chunks));
    VFMGR_CHECK(check_on_host(old, memory, bench.bytes));
    VFMGR_TRY(auto const stale, kernels.check(fresh, memory, chunks));
    VFMGR_CHECK(
        expect(stale.chunks_wrong == chunks.count &&
                   stale.detail == "chunk 0 is stale: of epoch 1, expected 2",
               fmt::format("{1} of {0} stale chunks were found", chunks.count, stale.chunks_wrong),
               blind));
    return fill_well(kernels, fresh, memory, chunks);
}

// Flips one bit by a copy from the host, checks that it is found, and flips it back.
Result<void> flip_one(GpuPayload const& kernels, Payload const& payload, GpuBuffer const& memory,
                      std::uint64_t at, Chunks chunks) {
    auto const bit = std::byte{1} << static_cast<int>(at % 8);
    std::array<std::byte, 1> byte{};
    VFMGR_CHECK(memory.read(at, byte));
    byte.front() ^= bit;
    VFMGR_CHECK(memory.write(at, byte));
    VFMGR_TRY(auto const found, kernels.check(payload, memory, chunks));
    auto const chunk = at / payload_chunk_bytes;
    bool const exact =
        found.chunks_wrong == 1 && found.bytes_wrong == 1 && found.wrong == std::vector{chunk} &&
        found.detail.starts_with(fmt::format("chunk {} differs from byte {} on", chunk, at));
    VFMGR_CHECK(
        expect(exact,
               fmt::format("a flipped bit of byte {} was not found at its place: {} chunks, '{}'",
                           at, found.chunks_wrong, found.detail),
               blind));
    byte.front() ^= bit;
    return memory.write(at, byte);
}

Result<void> misplace(GpuPayload const& kernels, Payload const& payload, GpuBuffer const& memory,
                      std::uint64_t from, Chunks chunks) {
    std::array<std::byte, payload_chunk_bytes> one{}, other{};
    auto const first = from * payload_chunk_bytes, second = first + payload_chunk_bytes;
    VFMGR_CHECK(memory.read(first, one));
    VFMGR_CHECK(memory.read(second, other));
    VFMGR_CHECK(memory.write(second, one));
    VFMGR_TRY(auto const landed, kernels.check(payload, memory, chunks));
    VFMGR_CHECK(memory.write(first, other));
    VFMGR_TRY(auto const swapped, kernels.check(payload, memory, chunks));
    bool const exact =
        landed.chunks_wrong == 1 && swapped.chunks_wrong == 2 &&
        landed.detail == fmt::format("chunk {} landed at chunk {}", from, from + 1) &&
        swapped.detail == fmt::format("chunk {} landed at chunk {}", from + 1, from);
    return expect(exact,
                  fmt::format("chunks {} and {} were exchanged, but that was not found: '{}', '{}'",
                              from, from + 1, landed.detail, swapped.detail),
                  blind);
}

CudaHandle<CudaEvent> make_event(Cuda const& cuda) {
    CudaEvent event = nullptr;
    cuda.calls.cuEventCreate(&event, 0);
    return {event, cuda.calls.cuEventDestroy_v2};
}

Result<void> record(Cuda const& cuda, CudaHandle<CudaEvent> const& event) {
    return cuda.run(cuda.calls.cuEventRecord, event.get(), nullptr);
}

// Returns gigabytes (10^9) per second: the median of several runs, after one that is not counted.
Result<double> measure(GpuBench const& bench, std::function<Result<void>()> const& start) {
    constexpr int times = 7;
    auto const& cuda = bench.context.cuda();
    auto const begin = make_event(cuda), end = make_event(cuda);
    std::vector<double> rates;
    for (int time = 0; time <= times; ++time) {
        VFMGR_CHECK(record(cuda, begin));
        VFMGR_CHECK(start());
        VFMGR_CHECK(record(cuda, end));
        VFMGR_CHECK(cuda.run(cuda.calls.cuEventSynchronize, end.get()));
        float milliseconds = 0;
        VFMGR_CHECK(cuda.run(cuda.calls.cuEventElapsedTime, &milliseconds, begin.get(), end.get()));
        if (time > 0)
            rates.push_back(static_cast<double>(bench.bytes) / 1e6 /
                            std::max(static_cast<double>(milliseconds), 1e-6));
    }
    std::ranges::sort(rates);
    return rates[rates.size() / 2];
}

}  // namespace

Result<TestResult> test_payload(GpuBench const& bench, GpuPayload const& kernels, Allocation how) {
    if (how == Allocation::vmm && !bench.gpu.vmm)
        return not_applicable("the GPU has no virtual memory management");
    VFMGR_TRY(auto const memory, GpuBuffer::allocate(bench.context, how, bench.bytes));
    VFMGR_CHECK(prove_payload(bench, kernels, memory));
    auto result =
        passed(fmt::format("{}: chunks never written, stale and intact are distinguished on the "
                           "GPU and, at both ends, by the host",
                           bytes_text(bench.bytes)));
    result.bytes_checked = bench.bytes;
    return result;
}

Result<TestResult> test_damage(GpuBench const& bench, GpuPayload const& kernels) {
    constexpr int anywhere = 14;
    auto const chunks = whole(bench.bytes);
    auto const payload = Payload::secret(1);
    VFMGR_TRY(auto const memory,
              GpuBuffer::allocate(bench.context, Allocation::plain, bench.bytes));
    VFMGR_CHECK(fill_well(kernels, payload, memory, chunks));
    std::vector<std::uint64_t> places{0, bench.bytes - 1};
    for (int i = 0; i < anywhere; ++i) places.push_back(random_number() % bench.bytes);
    for (auto const at : places) VFMGR_CHECK(flip_one(kernels, payload, memory, at, chunks));
    auto const from = std::min<std::uint64_t>(17, chunks.count - 2);
    VFMGR_CHECK(misplace(kernels, payload, memory, from, chunks));
    auto result = passed(fmt::format(
        "{} flipped bits and two exchanged chunks were found, each at its place", places.size()));
    result.bytes_checked = bench.bytes * (places.size() + 2);
    result.figures = {{"flipped_bits", static_cast<double>(places.size())}};
    return result;
}

Result<TestResult> test_rate(GpuBench const& bench, GpuPayload const& kernels) {
    constexpr double percent_required = 90, percent = 100;
    auto const& cuda = bench.context.cuda();
    auto const chunks = whole(bench.bytes);
    auto const payload = Payload::secret(1);
    VFMGR_TRY(auto const memory,
              GpuBuffer::allocate(bench.context, Allocation::plain, bench.bytes));
    VFMGR_TRY(auto const target,
              GpuBuffer::allocate(bench.context, Allocation::plain, bench.bytes));
    VFMGR_TRY(auto const fill,
              measure(bench, [&] { return kernels.start_fill(payload, memory, chunks); }));
    VFMGR_TRY(auto const copy, measure(bench, [&] {
                  return cuda.run(cuda.calls.cuMemcpyDtoDAsync_v2, target.range().address,
                                  memory.range().address, bench.bytes, nullptr);
              }));
    VFMGR_TRY(auto const read, measure(bench, [&] { return kernels.start_read(target, chunks); }));
    VFMGR_TRY(auto const check,
              measure(bench, [&] { return kernels.start_check(payload, target, chunks); }));
    // Verifies that the measured work was a check of the copy.
    VFMGR_TRY(auto const found, kernels.check(payload, target, chunks));
    VFMGR_CHECK(
        expect(found.chunks_wrong == 0, "after a copy, " + wrong_text(found), broken_memory));
    auto const of_read = check / read * percent;
    auto result = passed({});
    result.figures = {{"copy_gb_per_s", copy},
                      {"fill_gb_per_s", fill},
                      {"check_gb_per_s", check},
                      {"fill_percent_of_copy", fill / copy * percent},
                      {"check_percent_of_copy", check / copy * percent},
                      {"read_gb_per_s", read},
                      {"check_percent_of_read", of_read},
                      {"bytes", static_cast<double>(bench.bytes)}};
    if (of_read < percent_required)
        result.detail = fmt::format(
            "the check runs at {:.0f} % of a plain read; with 1 GiB on hardware it should be "
            "{:.0f} %; what is found is the same",
            of_read, percent_required);
    result.bytes_checked = bench.bytes;
    return result;
}

}  // namespace vfmgr::guest::gpu
