// SPDX-License-Identifier: Apache-2.0
// The GPUs of this machine, queried once: the library, what it reports about each, and the same
// joined with what the machine's files report. Owned by the user; one thread.
#pragma once

#include <memory>
#include <vector>

#include "guest-tools/gpu/gpu_facts.hpp"

namespace vfmgr::guest::gpu {

struct FoundGpus {
    std::unique_ptr<Cuda const> cuda;
    std::vector<CudaGpu> gpus;
    std::vector<GpuInfo> infos;  // one for each, in the same order
};

// Fails with not_found where the machine has no NVIDIA GPU of its own, else with what is wrong with
// the library.
[[nodiscard]] Result<FoundGpus> find_gpus(checks::Machine const& machine);

}  // namespace vfmgr::guest::gpu
