// SPDX-License-Identifier: Apache-2.0
// The GPUs that CUDA lists, judged by their attributes and never by name
// (GPUDIRECT.md#what-a-gpu-offers), joined with what the machine's files report about driver, BAR1,
// nvidia-peermem and NICs. Values; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/types/topology.hpp"
#include "guest-tools/gpu/cuda.hpp"
#include "vfmgr/machine/machine.hpp"

namespace vfmgr::guest::gpu {

// One GPU with what CUDA reports about it. What an older driver does not report is absent.
struct CudaGpu : GpuInfo {
    CudaDevice device = 0;
    bool vmm = false, managed = false;  // has virtual memory management, managed memory
};
[[nodiscard]] Result<std::vector<CudaGpu>> list_gpus(Cuda const& cuda);

// Whether the GPU may offer GPUDirect RDMA in any way; true where the driver is too old to report
// it.
[[nodiscard]] bool offers_gpudirect(GpuInfo const& gpu);

// Whether the GPU needs a flush to see a NIC's writes in order.
[[nodiscard]] bool needs_flush(GpuInfo const& gpu);
// Whether cuFlushGPUDirectRDMAWrites() exists and works, whatever the order of writes.
[[nodiscard]] bool offers_flush(Cuda const& cuda, GpuInfo const& gpu);
// Makes a NIC's earlier writes visible to the GPU of the current context. Only where
// offers_flush().
[[nodiscard]] Result<void> flush_writes(Cuda const& cuda);

// Adds what the machine's files report.
[[nodiscard]] GpuInfo join(GpuInfo info, checks::Machine const& machine);

// Measures how far each GPU is from that netdev's NIC, and makes it their nearest NIC. Leaves
// `gpus` unchanged where the netdev belongs to no PCI function.
void measure_from(checks::Machine const& machine, std::string_view netdev,
                  std::vector<GpuInfo>& gpus);

// Returns the GPU at that PCI address. Without an address, prefers GPUs that offer GPUDirect, then
// the one whose nearest NIC is nearest, then the first.
[[nodiscard]] Result<std::size_t> choose_gpu(std::vector<GpuInfo> const& gpus,
                                             std::string const& address = {});

// The GPUs of this machine, queried once: the library, what it reports about each, and the same
// joined with what the machine's files report. Owned by the user; one thread.

struct FoundGpus {
    std::unique_ptr<Cuda const> cuda;
    std::vector<CudaGpu> gpus;
    std::vector<GpuInfo> infos;  // one for each, in the same order
};

// Fails with not_found where the machine has no NVIDIA GPU of its own, else with what is wrong with
// the library.
[[nodiscard]] Result<FoundGpus> find_gpus(checks::Machine const& machine);

}  // namespace vfmgr::guest::gpu
