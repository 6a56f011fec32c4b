// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/all_reduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

// Returns the same error with the GPU named in it.
Error of_gpu(PciAddress const& pci, Error error) {
    error.detail = fmt::format("GPU {}: {}", to_string(pci), error.detail);
    return error;
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
    // The members that are destroyed next need the context to be current.
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
        std::vector<float> own(bytes / sizeof(float));
        for (std::size_t at = 0; at < own.size(); ++at)
            own[at] = static_cast<float>(values.of(number, at));
        VFMGR_CHECK(sent->write(0, std::as_bytes(std::span(own))));
        // The non-blocking stream would not wait for these copies by itself.
        return context.synchronize();
    }
};

enum class Place { out_of_place, in_place };

class Clique {
  public:
    using OnStep = std::function<void(std::string const&)>;
    Clique(Cuda const& cuda, Nccl const& nccl, OnStep const& on_step)
        : cuda_(cuda), nccl_(nccl), on_step_(on_step) {}
    Clique(Clique const&) = delete;
    Clique& operator=(Clique const&) = delete;
    // Aborts what still runs before its memory is freed.
    ~Clique() {
        for (auto* const comm : comms_)
            if (comm) nccl_.calls.ncclCommAbort(comm);
    }

    // Returns the verdict, with what was checked and measured as far as it got.
    TestResult test(std::vector<CudaGpu> const& gpus, std::uint64_t bytes_max) {
        auto done = open(gpus, bytes_max);
        if (done) done = prove();
        if (done) done = close();
        result_.verdict = done ? Verdict::pass : Verdict::fail;
        if (!done) {
            result_.detail = detail_with_causes(done.error());
            result_.remedy = done.error().remedy;
        }
        return result_;
    }

  private:
    Result<void> open(std::vector<CudaGpu> const& gpus, std::uint64_t bytes_max) {
        constexpr std::uint64_t least = 4096;
        bytes_ = bytes_max;
        for (auto const& gpu : gpus) {
            on_step_("setting up GPU " + to_string(gpu.pci));
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
        on_step_(fmt::format("creating communicators for {} GPUs with NCCL {}", gpus.size(),
                             nccl_.version));
        std::vector<NcclComm> comms(gpus.size());
        VFMGR_CHECK(nccl_.run(nccl_.calls.ncclCommInitAll, comms.data(),
                              static_cast<int>(comms.size()), devices.data()));
        comms_ = std::move(comms);
        return {};
    }

    // These sizes exercise NCCL's three protocols; one of them is not a round multiple.
    Result<void> prove() {
        constexpr std::array<std::uint64_t, 4> sizes{4, 4096, 262'148, 4U << 20U};
        for (auto const bytes : sizes)
            if (bytes < bytes_) VFMGR_CHECK(prove_size(bytes));
        VFMGR_CHECK(prove_size(bytes_));
        result_.detail = fmt::format(
            "{} GPUs, NCCL {}: every sum is right on every GPU, {} to {}, out of place and in "
            "place; "
            "bus bandwidth {:.4g} GB/s, algorithm bandwidth {:.4g} GB/s",
            ranks_.size(), nccl_.version, bytes_text(sizes.front()), bytes_text(bytes_),
            result_.figures["busbw_gb_per_s"], result_.figures["algbw_gb_per_s"]);
        return {};
    }

    Result<void> close() {
        on_step_("taking the communicators down");
        for (auto& comm : comms_)
            VFMGR_CHECK(nccl_.run(nccl_.calls.ncclCommDestroy, std::exchange(comm, nullptr)));
        return {};
    }

    Result<void> prove_size(std::size_t bytes) {
        on_step_(fmt::format("an all-reduce of {} over {} GPUs with NCCL {}", bytes_text(bytes),
                             ranks_.size(), nccl_.version));
        AllReduceValues const values{random_number(), static_cast<std::uint32_t>(ranks_.size())};
        VFMGR_CHECK(fill(values, bytes));
        VFMGR_CHECK(run(bytes, Place::out_of_place));
        VFMGR_CHECK(check(values, bytes, Place::out_of_place));
        if (bytes == bytes_) {
            VFMGR_CHECK(fill(values, bytes));
            VFMGR_TRY(auto const seconds, measure(bytes));
            // Verifies that the measured work was an all-reduce.
            VFMGR_CHECK(check(values, bytes, Place::out_of_place));
            auto const n = static_cast<double>(ranks_.size());
            auto const rate = static_cast<double>(bytes) / seconds / 1e9;
            result_.figures = {{"ranks", n},
                               {"bytes", static_cast<double>(bytes)},
                               {"algbw_gb_per_s", rate},
                               {"busbw_gb_per_s", rate * 2 * (n - 1) / n}};
        }
        VFMGR_CHECK(run(bytes, Place::in_place));
        return check(values, bytes, Place::in_place);
    }

    Result<void> fill(AllReduceValues const& values, std::size_t bytes) {
        for (std::uint32_t at = 0; at < values.ranks; ++at)
            VFMGR_CHECK(ranks_[at]->fill(values, at, bytes));
        return {};
    }

    // Checks every sum, on the host.
    Result<void> check(AllReduceValues const& values, std::size_t bytes, Place place) {
        std::vector<float> sums(bytes / sizeof(float));
        for (auto const& rank : ranks_) {
            auto const& buffer = place == Place::in_place ? rank->sent : rank->received;
            VFMGR_CHECK(rank->context.use());
            VFMGR_CHECK(buffer->read(0, std::as_writable_bytes(std::span(sums))));
            std::uint64_t wrong = 0;
            std::size_t first = 0;
            for (std::size_t at = 0; at < sums.size(); ++at)
                if (sums[at] != static_cast<float>(values.sum(at)) && wrong++ == 0) first = at;
            result_.bytes_checked += bytes;
            result_.mismatches += wrong;
            if (wrong == 0) continue;
            return fail(
                Problem::internal,
                fmt::format("all-reduce of {} by NCCL {} over {} GPUs, {}: {} of {} sums are wrong "
                            "on GPU {}: element {} {}",
                            bytes_text(bytes), nccl_.version, ranks_.size(),
                            place == Place::in_place ? "in place" : "out of place", wrong,
                            sums.size(), to_string(rank->pci), first,
                            wrong_sum_text(values, first, sums[first])),
                wrong_sum_remedy);
        }
        return {};
    }

    // Names the GPU whose values are missing: one faulty GPU explains more than a number.
    std::string wrong_sum_text(AllReduceValues const& values, std::size_t element,
                               float found) const {
        constexpr auto poison = std::to_integer<std::uint32_t>(verify::poison_byte) * 0x01010101U;
        auto const sum = values.sum(element);
        auto text = std::bit_cast<std::uint32_t>(found) == poison
                        ? "was never written"
                        : fmt::format("is {} instead of {}", found, sum);
        for (std::uint32_t rank = 0; rank < values.ranks; ++rank)
            if (static_cast<float>(sum - values.of(rank, element)) == found)
                return fmt::format("{}, which is the sum without the values of GPU {}", text,
                                   to_string(ranks_[rank]->pci));
        return text;
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
    OnStep const& on_step_;
    TestResult result_;
    std::uint64_t bytes_ = 0;  // size of the largest all-reduce
    std::vector<std::unique_ptr<Rank>> ranks_;
    std::vector<NcclComm> comms_;
};

}  // namespace

void all_reduce(Cuda const& cuda, std::vector<CudaGpu> const& gpus, std::uint64_t bytes_max,
                AllReduceEars const& ears, std::string const& library) {
    ears.on_step("loading " + library);
    auto const nccl = Nccl::open(library);
    if (!nccl) return ears.on_result(not_passed(Verdict::skip, nccl.error()));
    Clique clique(cuda, **nccl, ears.on_step);
    ears.on_result(clique.test(gpus, bytes_max));
}

}  // namespace vfmgr::guest::gpu
