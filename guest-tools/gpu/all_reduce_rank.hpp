// SPDX-License-Identifier: Apache-2.0
// One GPU's part in an all-reduce: its context, its stream, what it adds and what it receives.
// Owned by the clique; runs on its thread.
#pragma once

#include <memory>
#include <optional>

#include "guest-tools/gpu/all_reduce_values.hpp"
#include "guest-tools/gpu/gpu_facts.hpp"
#include "guest-tools/gpu/gpu_memory.hpp"

namespace vfmgr::guest::gpu {

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

}  // namespace vfmgr::guest::gpu
