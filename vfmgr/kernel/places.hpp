// SPDX-License-Identifier: Apache-2.0
// Where a host's GPUs and PFs are on its PCI tree. Any thread.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// Without GPUs, no PF is looked for. Ports' ACS is root's to read.
[[nodiscard]] HostPlaces read_places(LinuxKernelRoots const& roots);

// Reads again when functions have come or gone, or after a minute: a host with a thousand VFs has a
// thousand classes to read, and a card may have another at its address.
class PlaceBook {
  public:
    [[nodiscard]] HostPlaces look_up(LinuxKernelRoots const& roots);

  private:
    std::mutex mutex_;  // guards the members below
    std::vector<std::string> functions_;
    Deadline read_again_{};
    HostPlaces places_;
};

}  // namespace vfmgr
