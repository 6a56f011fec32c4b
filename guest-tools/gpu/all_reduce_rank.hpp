// SPDX-License-Identifier: Apache-2.0
// What each rank adds in the test's all-reduce: whole numbers whose sum a float holds exactly,
// whatever the order of addition. They differ by run, rank and place, so a sum that is stale,
// misplaced or lacks a rank never equals the expected one. Pure.
#pragma once

#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/types/verification.hpp"
#include "guest-tools/gpu/all_reduce.hpp"
#include "guest-tools/gpu/gpu_facts.hpp"
#include "guest-tools/gpu/gpu_memory.hpp"

namespace vfmgr::guest::gpu {

struct AllReduceValues {
    std::uint64_t seed = 0;
    std::uint32_t ranks = 1;

    [[nodiscard]] std::uint32_t of(std::uint32_t rank, std::size_t element) const {
        constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
        constexpr int exact_bits = 24;                     // of a float
        auto mixed = (seed + (std::uint64_t{rank} << 40U) + element) * odd;
        mixed = (mixed ^ mixed >> 32U) * odd;
        auto const bits = exact_bits - std::bit_width(ranks);
        return static_cast<std::uint32_t>(mixed >> (64 - bits));
    }
    [[nodiscard]] std::uint32_t sum(std::size_t element) const {
        std::uint32_t sum = 0;
        for (std::uint32_t rank = 0; rank < ranks; ++rank) sum += of(rank, element);
        return sum;
    }
};

// One GPU's part in an all-reduce: its context, its stream, what it adds and what it receives.
// Owned by the clique; runs on its thread.

struct WrongSums {
    std::uint64_t wrong = 0;  // elements
    std::size_t first = 0;
    std::string what;                    // first wrong element: "is 7, and not 9"
    std::optional<std::uint32_t> lacks;  // the rank without which the sum is the one found
};

class AllReduceRank {
  public:
    [[nodiscard]] static Result<std::unique_ptr<AllReduceRank>> open(Cuda const& cuda,
                                                                     CudaGpu const& gpu);
    AllReduceRank(AllReduceRank const&) = delete;
    AllReduceRank& operator=(AllReduceRank const&) = delete;
    ~AllReduceRank();

    [[nodiscard]] Result<void> allocate(std::size_t bytes);
    // Writes the rank's values, and poison where the sums will be.
    [[nodiscard]] Result<void> fill(AllReduceValues const& values, std::uint32_t rank,
                                    std::size_t bytes) const;
    // Checks every element, on the host.
    [[nodiscard]] Result<WrongSums> check(AllReduceValues const& values, GpuMemory const& memory,
                                          std::size_t bytes) const;

    [[nodiscard]] GpuContext const& context() const { return context_; }
    [[nodiscard]] PciAddress const& pci() const { return pci_; }
    [[nodiscard]] CudaStream stream() const { return stream_; }
    [[nodiscard]] GpuMemory const& sent() const { return *sent_; }
    [[nodiscard]] GpuMemory const& received() const { return *received_; }

  private:
    AllReduceRank(GpuContext context, PciAddress const& pci)
        : context_(std::move(context)), pci_(pci) {}
    GpuContext const context_;
    PciAddress const pci_;
    CudaStream stream_ = nullptr;
    std::optional<GpuMemory> sent_, received_;
};

// Returns the same error with the GPU named in it.
[[nodiscard]] Error of_gpu(PciAddress const& pci, Error error);

// Runs the all-reduce in a process of its own, with a watchdog: NCCL and GPUs may hang forever, an
// NCCL plugin may crash, and NCCL writes to standard output. The command's thread.

inline constexpr char const* all_reduce_command = "gpu-all-reduce";

struct AllReduceOrder {
    // This program, which calls run_all_reduce() with the arguments appended to these.
    std::vector<std::string> program{"/proc/self/exe", all_reduce_command};
    AllReduceOptions options{};
    std::chrono::seconds step_max{60};  // no message for this long is a hang
};

// Returns a verdict in any case, and in time. The caller must hold no context: in exclusive compute
// mode it would keep the GPU from the process.
[[nodiscard]] TestResult test_all_reduce(Cuda const& cuda, AllReduceOrder const& order);

// Runs in the process. `words` are bytes_max and library. Returns the exit status.
int run_all_reduce(std::vector<std::string> const& words);

}  // namespace vfmgr::guest::gpu
