// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/all_reduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include "api/os/random.hpp"
#include "guest-tools/gpu/gpu_bench.hpp"
#include "guest-tools/gpu/gpu_buffer.hpp"
#include "vfmgr/proof/random_payload.hpp"

namespace vfmgr::guest::gpu {
namespace {

using Steady = std::chrono::steady_clock;

constexpr auto wrong_sum_remedy =
    "run NCCL_P2P_DISABLE=1 vf-guest gpu test: if that passes, the direct path between the GPUs "
    "corrupts data: ACS or an IOMMU redirects it (vf-guest doctor), or NVLink does (nvidia-smi "
    "nvlink -e; dmesg | grep NVRM)";

double seconds_since(Steady::time_point begin) {
    return std::max(std::chrono::duration<double>(Steady::now() - begin).count(), 1e-9);
}

constexpr std::size_t block_elements = std::size_t{1} << 20U;  // on the host at a time

std::string wrong_sum_text(float found, std::uint32_t expected) {
    constexpr auto poison = std::to_integer<std::uint32_t>(verify::poison_byte) * 0x01010101U;
    if (std::bit_cast<std::uint32_t>(found) == poison) return "was never written";
    return fmt::format("is {} instead of {}", found, expected);
}

// Finds the rank whose values are missing: one faulty GPU explains more than a number.
std::optional<std::uint32_t> lacking(AllReduceValues const& values, std::size_t element,
                                     float found) {
    auto const sum = values.sum(element);
    for (std::uint32_t rank = 0; rank < values.ranks; ++rank)
        if (static_cast<float>(sum - values.of(rank, element)) == found) return rank;
    return std::nullopt;
}

// Returns the same error with the GPU named in it.
Error of_gpu(PciAddress const& pci, Error error) {
    error.detail = fmt::format("GPU {}: {}", to_string(pci), error.detail);
    return error;
}

struct WrongSums {
    std::uint64_t wrong = 0;  // elements
    std::size_t first = 0;
    std::string what;                    // first wrong element: "is 7, and not 9"
    std::optional<std::uint32_t> lacks;  // the rank without which the sum is the one found
};

// Calls `work` with each block of so many floats and the number of its first one.
template <class Work>
Result<void> in_blocks(std::size_t bytes, Work work) {
    auto const elements = bytes / sizeof(float);
    std::vector<float> room(std::min(block_elements, elements));
    for (std::size_t begin = 0; begin < elements; begin += room.size())
        VFMGR_CHECK(work(begin, std::span(room).first(std::min(room.size(), elements - begin))));
    return {};
}

// One GPU's part in an all-reduce: its context, its stream, what it adds and what it receives.
struct Rank {
    PciAddress pci;
    GpuContext context;
    std::optional<GpuBuffer> sent{}, received{};
    CudaHandle<CudaStream> stream;

    Rank(CudaGpu const& gpu, GpuContext opened)
        : pci(gpu.pci),
          context(std::move(opened)),
          stream(nullptr, context.cuda().calls.cuStreamDestroy_v2) {}
    Rank(Rank const&) = delete;
    Rank& operator=(Rank const&) = delete;
    // What is released next needs the context.
    ~Rank() { static_cast<void>(context.use()); }

    static Result<std::unique_ptr<Rank>> open(Cuda const& cuda, CudaGpu const& gpu) {
        VFMGR_TRY(auto context, GpuContext::open(cuda, gpu.device));
        auto rank = std::make_unique<Rank>(gpu, std::move(context));
        CudaStream stream = nullptr;
        VFMGR_CHECK(cuda.run(cuda.calls.cuStreamCreate, &stream, stream_non_blocking));
        rank->stream.reset(stream);
        return rank;
    }

    Result<void> allocate(std::size_t bytes) {
        VFMGR_CHECK(context.use());
        for (auto* const buffer : {&sent, &received}) {
            VFMGR_TRY(auto made, GpuBuffer::allocate(context, Allocation::plain, bytes));
            buffer->emplace(std::move(made));
        }
        return {};
    }

    // Writes the rank's values, and poison where the sums will be.
    Result<void> fill(AllReduceValues const& values, std::uint32_t number,
                      std::size_t bytes) const {
        VFMGR_CHECK(context.use());
        VFMGR_CHECK(received->set(verify::poison_byte, bytes));
        VFMGR_CHECK(in_blocks(bytes, [&](std::size_t begin, std::span<float> block) {
            for (std::size_t at = 0; at < block.size(); ++at)
                block[at] = static_cast<float>(values.of(number, begin + at));
            return sent->write(begin * sizeof(float), std::as_bytes(block));
        }));
        // The non-blocking stream does not wait for these copies either.
        return context.synchronize();
    }

    // Checks every element, on the host.
    Result<WrongSums> check(AllReduceValues const& values, GpuBuffer const& buffer,
                            std::size_t bytes) const {
        VFMGR_CHECK(context.use());
        WrongSums found;
        auto const take = [&](std::size_t element, float sum) {
            auto const expected = values.sum(element);
            if (sum == static_cast<float>(expected) || found.wrong++ > 0) return;
            found.first = element;
            found.what = wrong_sum_text(sum, expected);
            found.lacks = lacking(values, element, sum);
        };
        auto const take_block = [&](std::size_t begin, std::span<float> block) -> Result<void> {
            VFMGR_CHECK(buffer.read(begin * sizeof(float), std::as_writable_bytes(block)));
            for (std::size_t at = 0; at < block.size(); ++at) take(begin + at, block[at]);
            return {};
        };
        VFMGR_CHECK(in_blocks(bytes, take_block));
        return found;
    }
};

enum class Place { out_of_place, in_place };

class Clique {
  public:
    Clique(Cuda const& cuda, Nccl const& nccl, AllReduceEars const& ears)
        : cuda_(cuda), nccl_(nccl), ears_(ears) {}
    Clique(Clique const&) = delete;
    Clique& operator=(Clique const&) = delete;
    // Aborts what still runs before its memory is freed.
    ~Clique() {
        for (auto* const comm : comms_)
            if (comm) nccl_.calls.ncclCommAbort(comm);
    }

    Result<void> open(std::vector<CudaGpu> const& gpus, std::uint64_t bytes_max) {
        constexpr std::uint64_t least = 4096;
        bytes_ = bytes_max;
        for (auto const& gpu : gpus) {
            ears_.on_step("setting up GPU " + to_string(gpu.pci));
            auto rank = Rank::open(cuda_, gpu);
            if (!rank) return fail(of_gpu(gpu.pci, std::move(rank.error())));
            VFMGR_TRY(auto const free, (*rank)->context.free_bytes());
            bytes_ = std::min<std::uint64_t>(bytes_, free / 8);
            ranks_.push_back(std::move(*rank));
        }
        bytes_ = std::max(bytes_, least) / sizeof(float) * sizeof(float);
        std::vector<int> devices;
        for (auto const& rank : ranks_) {
            if (auto made = rank->allocate(bytes_); !made)
                return fail(of_gpu(rank->pci, std::move(made.error())));
            devices.push_back(static_cast<int>(devices.size()));
        }
        ears_.on_step(fmt::format("creating communicators for {} GPUs with NCCL {}", gpus.size(),
                                  nccl_.version));
        std::vector<NcclComm> comms(gpus.size());
        VFMGR_CHECK(nccl_.run(nccl_.calls.ncclCommInitAll, comms.data(),
                              static_cast<int>(comms.size()), devices.data()));
        comms_ = std::move(comms);
        return {};
    }

    // Fills in what was checked and measured, as far as it got.
    Result<void> prove(TestResult& result) {
        // These sizes exercise NCCL's three protocols; they include one that is no round multiple.
        std::uint64_t smallest = 0;
        for (auto const bytes : {std::uint64_t{4}, std::uint64_t{4096}, std::uint64_t{262'148},
                                 std::uint64_t{4} << 20U, bytes_}) {
            if (bytes > bytes_ || (bytes == bytes_ && result.figures.contains("bytes"))) continue;
            if (smallest == 0) smallest = bytes;
            VFMGR_CHECK(prove_size(bytes, result));
        }
        result.detail = fmt::format(
            "{} GPUs, NCCL {}: every sum is right on every GPU, {} to {}, out of place and in "
            "place; "
            "bus bandwidth {:.4g} GB/s, algorithm bandwidth {:.4g} GB/s",
            ranks_.size(), nccl_.version, bytes_text(smallest), bytes_text(bytes_),
            result.figures["busbw_gb_per_s"], result.figures["algbw_gb_per_s"]);
        return {};
    }

    Result<void> close() {
        ears_.on_step("taking the communicators down");
        for (auto& comm : comms_)
            VFMGR_CHECK(nccl_.run(nccl_.calls.ncclCommDestroy, std::exchange(comm, nullptr)));
        return {};
    }

  private:
    Result<void> prove_size(std::size_t bytes, TestResult& result) {
        ears_.on_step(fmt::format("an all-reduce of {} over {} GPUs with NCCL {}",
                                  bytes_text(bytes), ranks_.size(), nccl_.version));
        AllReduceValues const values{random_number(), static_cast<std::uint32_t>(ranks_.size())};
        VFMGR_CHECK(fill(values, bytes));
        VFMGR_CHECK(run(bytes, Place::out_of_place));
        VFMGR_CHECK(check(values, bytes, Place::out_of_place, result));
        if (bytes == bytes_) {
            VFMGR_CHECK(fill(values, bytes));
            VFMGR_TRY(auto const seconds, measure(bytes));
            // Verifies that the measured work was an all-reduce.
            VFMGR_CHECK(check(values, bytes, Place::out_of_place, result));
            auto const n = static_cast<double>(ranks_.size());
            auto const rate = static_cast<double>(bytes) / seconds / 1e9;
            result.figures = {{"ranks", n},
                              {"bytes", static_cast<double>(bytes)},
                              {"algbw_gb_per_s", rate},
                              {"busbw_gb_per_s", rate * 2 * (n - 1) / n}};
        }
        VFMGR_CHECK(run(bytes, Place::in_place));
        return check(values, bytes, Place::in_place, result);
    }

    Result<void> fill(AllReduceValues const& values, std::size_t bytes) {
        for (std::uint32_t at = 0; at < values.ranks; ++at)
            VFMGR_CHECK(ranks_[at]->fill(values, at, bytes));
        return {};
    }

    Result<void> check(AllReduceValues const& values, std::size_t bytes, Place place,
                       TestResult& result) {
        for (std::uint32_t at = 0; at < values.ranks; ++at) {
            auto const& rank = *ranks_[at];
            VFMGR_TRY(
                auto const found,
                rank.check(values, place == Place::in_place ? *rank.sent : *rank.received, bytes));
            result.bytes_checked += bytes;
            result.mismatches += found.wrong;
            if (found.wrong == 0) continue;
            auto detail = fmt::format(
                "all-reduce of {} by NCCL {} over {} GPUs, {}: {} of {} sums are wrong on GPU {}: "
                "element {} {}",
                bytes_text(bytes), nccl_.version, ranks_.size(),
                place == Place::in_place ? "in place" : "out of place", found.wrong,
                bytes / sizeof(float), to_string(rank.pci), found.first, found.what);
            if (found.lacks)
                detail += fmt::format(", which is the sum without the values of GPU {}",
                                      to_string(ranks_[*found.lacks]->pci));
            return fail(Problem::internal, std::move(detail), wrong_sum_remedy);
        }
        return {};
    }

    Result<void> start(std::size_t bytes, Place place) {
        auto const& calls = nccl_.calls;
        VFMGR_CHECK(nccl_.run(calls.ncclGroupStart));
        NcclResult first = nccl_success;
        for (std::size_t at = 0; at < ranks_.size() && first == nccl_success; ++at) {
            auto const& rank = *ranks_[at];
            auto* const sent = std::bit_cast<void*>(rank.sent->range().address);
            auto* const received = std::bit_cast<void*>(rank.received->range().address);
            first = calls.ncclAllReduce(sent, place == Place::in_place ? sent : received,
                                        bytes / sizeof(float), nccl_float32, nccl_sum, comms_[at],
                                        rank.stream.get());
        }
        auto const ended = calls.ncclGroupEnd();
        VFMGR_CHECK(nccl_.done("ncclAllReduce", first));
        return nccl_.done("ncclGroupEnd", ended);
    }

    Result<void> wait() {
        for (auto const& rank : ranks_) {
            VFMGR_CHECK(rank->context.use());
            while (true) {
                auto const now = cuda_.calls.cuStreamQuery(rank->stream.get());
                if (now == cuda_success) break;
                if (now != cuda_not_ready)
                    return fail(of_gpu(rank->pci, cuda_.refusal("cuStreamQuery", now)));
                VFMGR_CHECK(check_errors());
                std::this_thread::yield();
            }
        }
        return {};
    }

    Result<void> run(std::size_t bytes, Place place) {
        VFMGR_CHECK(start(bytes, place));
        return wait();
    }

    // NCCL reports errors only when queried. Until an abort, the streams keep running.
    Result<void> check_errors() {
        for (auto* const comm : comms_) {
            NcclResult found = nccl_success;
            VFMGR_CHECK(nccl_.run(nccl_.calls.ncclCommGetAsyncError, comm, &found));
            if (found != nccl_in_progress) VFMGR_CHECK(nccl_.done("ncclAllReduce", found));
        }
        return {};
    }

    // Returns the seconds of one all-reduce, from many back to back as in nccl-tests.
    Result<double> measure(std::size_t bytes) {
        constexpr double times_max = 20, seconds_max = 2;
        auto begin = Steady::now();
        VFMGR_CHECK(run(bytes, Place::out_of_place));
        auto const times =
            static_cast<int>(std::clamp(seconds_max / seconds_since(begin), 1.0, times_max));
        begin = Steady::now();
        for (int time = 0; time < times; ++time) VFMGR_CHECK(start(bytes, Place::out_of_place));
        VFMGR_CHECK(wait());
        return seconds_since(begin) / times;
    }

    Cuda const& cuda_;
    Nccl const& nccl_;
    AllReduceEars const& ears_;
    std::uint64_t bytes_ = 0;  // size of the largest all-reduce
    std::vector<std::unique_ptr<Rank>> ranks_;
    std::vector<NcclComm> comms_;
};

}  // namespace

void all_reduce(Cuda const& cuda, std::vector<CudaGpu> const& gpus, AllReduceOptions const& options,
                AllReduceEars const& ears) {
    ears.on_step("loading " + options.library);
    auto const nccl = Nccl::open(options.library);
    if (!nccl) return ears.on_result(not_passed(Verdict::skip, nccl.error()));
    Clique clique(cuda, **nccl, ears);
    auto result = passed({});
    auto done = clique.open(gpus, options.bytes_max);
    if (done) done = clique.prove(result);
    if (done) done = clique.close();
    if (!done) {
        auto const failure = not_passed(Verdict::fail, done.error());
        result.verdict = failure.verdict;
        result.detail = failure.detail;
        result.remedy = failure.remedy;
    }
    ears.on_result(result);
}

}  // namespace vfmgr::guest::gpu
