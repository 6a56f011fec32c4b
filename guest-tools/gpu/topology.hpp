// SPDX-License-Identifier: Apache-2.0
// How far each GPU of this machine is from each NIC with RDMA, really and by NCCL's rule, and how
// NCCL uses it. In a VM, the host reports where its functions are. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/topology.hpp"
#include "guest-tools/gpu/nccl.hpp"
#include "vfmgr/machine/machine.hpp"

namespace vfmgr::guest::gpu {

// Returns a function's place in the form of VmHostdev.in_guest, from the target of its folder in
// sysfs: "../../../devices/pci0000:00/0000:00:02.1/0000:03:00.0" is "00/02.1/00.0".
[[nodiscard]] std::optional<std::string> path_here(std::string_view target);

// Returns the GPUs and NICs of this VM that the host has reported.
[[nodiscard]] std::vector<PlacedFunction> placed(checks::Machine const& vm,
                                                 HostTopology const& host_topology);

struct NcclState {
    NcclSettings settings;
    std::string file;              // the topology file that NCCL reads; empty: none
    bool file_is_current = false;  // it matches the host's report
};
// `host_topology` is absent on bare metal, or if the host did not report it.
[[nodiscard]] std::vector<GpuNicPair> judge(checks::Machine const& machine,
                                            std::vector<GpuInfo> const& gpus,
                                            std::optional<HostTopology> const& host_topology,
                                            NcclState const& nccl);

// One line or more for each pair, each ending in a newline; then the host's notes.
[[nodiscard]] std::string describe(std::vector<GpuNicPair> const& pairs,
                                   std::vector<std::string> const& notes);

}  // namespace vfmgr::guest::gpu
