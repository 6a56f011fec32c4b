// SPDX-License-Identifier: Apache-2.0
// The GPUs that CUDA has, by what its attributes say and never by name (verification.md, 4.6),
// joined with what the machine's files say of driver, BAR1, nvidia-peermem and NICs.
// Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/gpu.hpp"
#include "guest-tools/gpu/cuda.hpp"
#include "vfmgr/checks/machine.hpp"

namespace vfmgr::guest::gpu {

// One GPU as CUDA knows it. What the driver is too old to know is absent.
struct CudaGpu {
    CudaDevice device = 0;
    PciAddress pci;
    std::string name;
    int major = 0, minor = 0;  // compute capability
    std::uint64_t memory_bytes = 0;
    std::optional<int> gpu_direct_rdma, dma_buf, vmm_gpu_direct_rdma, flush_options,
        writes_ordering, vmm, managed;
};
[[nodiscard]] Result<std::vector<CudaGpu>> list_gpus(Cuda const& cuda);

// GPUDirect RDMA, in any way; where the driver is too old to tell, it may.
[[nodiscard]] bool offers_gpudirect(CudaGpu const& gpu);

// Whether cuFlushGPUDirectRDMAWrites() is there and works, whatever the order of writes.
[[nodiscard]] bool offers_flush(Cuda const& cuda, CudaGpu const& gpu);
// What a NIC wrote before is seen by the GPU of the current context after. Only where it is
// offered.
[[nodiscard]] Result<void> flush_writes(Cuda const& cuda);

[[nodiscard]] GpuInfo join(CudaGpu const& gpu, int cuda_version, checks::Machine const& machine);

// `gpus` as they are seen from that netdev's NIC: it is the nearest of each. As they were where the
// netdev is none of a PCI function.
void measure_from(checks::Machine const& machine, std::string_view netdev,
                  std::vector<GpuInfo>& gpus);

// The one at that address; without an address, of those that offer GPUDirect the one whose nearest
// NIC is nearest, else the first.
[[nodiscard]] Result<std::size_t> choose_gpu(std::vector<GpuInfo> const& gpus,
                                             std::optional<PciAddress> const& wanted);

}  // namespace vfmgr::guest::gpu
