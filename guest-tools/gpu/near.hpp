// SPDX-License-Identifier: Apache-2.0
// Measures what the PCI tree gives in this machine: how fast main memory and each NIC reach each
// GPU. To be run before and after a VM's devices are placed anew. Blocks for seconds; one thread.
#pragma once

#include <string>
#include <vector>

#include "api/types/topology.hpp"
#include "guest-tools/gpu/gpu_facts.hpp"

namespace vfmgr::guest::gpu {

// First "copies GPU", one for each GPU, then "pair GPU NIC". A pair runs over a NIC that has an
// address: RDMA from and to the GPU's memory, between two queue pairs of the NIC, so what is
// measured never leaves it. Figures are GB/s (1e9 bytes). What could not run is skipped, with the
// remedy; there are no pairs where this machine has no NIC with RDMA: one test, "pairs", says that.
[[nodiscard]] std::vector<TestResult> measure(FoundGpus const& found,
                                              checks::Machine const& machine,
                                              std::vector<GpuNicPair> const& pairs);

}  // namespace vfmgr::guest::gpu
