// SPDX-License-Identifier: Apache-2.0
// How far each GPU of this machine is from each NIC with RDMA, really and as NCCL sees it, and what
// NCCL makes of it: in a VM the host tells where its functions are. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/gpu.hpp"
#include "guest-tools/gpu/nccl.hpp"
#include "vfmgr/checks/machine.hpp"

namespace vfmgr::guest::gpu {

// A function's place as VmHostdev.in_guest has it, from where its folder in sysfs is:
// "../../../devices/pci0000:00/0000:00:02.1/0000:03:00.0" is "00/02.1/00.0".
[[nodiscard]] std::optional<std::string> path_here(std::string_view target);

// GPUs and NICs of this VM that the host has told of.
[[nodiscard]] std::vector<PlacedFunction> placed(checks::Machine const& vm,
                                                 HostTopology const& told);

struct NcclState {
    NcclSettings settings;
    std::string file;              // the topology file that NCCL reads; empty: none
    bool file_is_current = false;  // it says what the host told
};
// `told` is absent on bare metal, or where the host did not tell.
[[nodiscard]] std::vector<GpuNicPair> judge(checks::Machine const& machine,
                                            std::vector<GpuInfo> const& gpus,
                                            std::optional<HostTopology> const& told,
                                            NcclState const& nccl);

// A line or more for each pair, each ended; then what the host notes.
[[nodiscard]] std::string describe(std::vector<GpuNicPair> const& pairs,
                                   std::vector<std::string> const& notes);

}  // namespace vfmgr::guest::gpu
