// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/find_gpus.hpp"

#include "vfmgr/checks/peermem.hpp"

namespace vfmgr::guest::gpu {

Result<FoundGpus> find_gpus(checks::Machine const& machine) {
    FoundGpus found;
    auto cuda = Cuda::open();
    if (!cuda) {
        // Without a GPU, a missing library is no fault.
        if (machine.pci && checks::own_gpus(machine).empty())
            return fail(Problem::not_found, "there is no NVIDIA GPU that this machine uses itself",
                        "attach one to this VM; vf-guest rdma lists its NICs");
        return fail(std::move(cuda.error()));
    }
    found.cuda = std::move(*cuda);
    VFMGR_TRY(found.gpus, list_gpus(*found.cuda));
    for (auto const& one : found.gpus)
        found.infos.push_back(join(one, found.cuda->version, machine));
    return found;
}

}  // namespace vfmgr::guest::gpu
