// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine, asked for once: the library, what it knows of each, and the same joined
// with what the machine's files say. Owned by whoever uses them; one thread.
#pragma once

#include <memory>
#include <vector>

#include "guest-tools/gpu/gpu_facts.hpp"

namespace vfmgr::guest::gpu {

struct FoundGpus {
    std::unique_ptr<Cuda const> cuda;
    std::vector<CudaGpu> gpus;
    std::vector<GpuInfo> infos;  // of each, in the same order
};

// not_found where the machine has no NVIDIA GPU of its own; else what is wrong with the library.
[[nodiscard]] Result<FoundGpus> find_gpus(checks::Machine const& machine);

}  // namespace vfmgr::guest::gpu
