// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/fleet.hpp"

#include <fmt/format.h>

namespace vfmgr {

Result<void> admit_fence(Control::State& state, std::uint64_t fence) {
    auto const& fleet = state.desired().fleet;
    if (!fleet)
        return fail(Problem::forbidden, "this host is in no fleet, so no fence means anything here",
                    "leave the header Vfmgr-Fence out");
    if (fence < fleet->fence)
        return fail(Problem::precondition_failed,
                    fmt::format("this is an older scheduler of the fleet: its fence is {}, and {} "
                                "was here",
                                fence, fleet->fence),
                    "leave the fleet's work to its leader as it is now");
    if (fence == fleet->fence) return {};
    Batch batch;
    batch.save_fleet = *fleet;
    batch.save_fleet->fence = fence;
    return state.commit(std::move(batch));
}

Result<void> check_confirmed(DesiredState const& desired, Command const& command) {
    bool const hands_out =
        std::holds_alternative<Attach>(command) || std::holds_alternative<Reserve>(command);
    if (!hands_out || !desired.fleet || !desired.restored_at) return {};
    return fail(Problem::unavailable,
                fmt::format("the store was restored from a backup at {}, and what was attached "
                            "since the backup is not in it",
                            to_rfc3339(*desired.restored_at)),
                "compare this host's VMs with vfctl attachment list, then: vfctl fleet confirm");
}

}  // namespace vfmgr
