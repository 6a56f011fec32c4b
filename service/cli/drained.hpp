// SPDX-License-Identifier: Apache-2.0
// Checks whether any VM has a VF of a host. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "service/cli/session.hpp"
#include "vfmgr/machine/collect.hpp"
#include "vfmgr/store/left_store.hpp"

namespace vfmgr {

struct DrainSources {
    std::string start_mark = start_mark_file;
    std::function<checks::Facts()> vfio_holders = checks::collect_vfio_holders;
    std::chrono::seconds answer_time_max{20};
};

// Fails with vf_in_use and the VMs' names if any VM has a VF; also if that can't be determined.
[[nodiscard]] Result<void> require_drained(Options const& options,
                                           DrainSources const& sources = {});

}  // namespace vfmgr
