// SPDX-License-Identifier: Apache-2.0
// Waits until other modules are loaded or can be loaded: by the kernel's own events and by depmod's
// replacing the list, never by time. Owned by one thread.
#pragma once

#include <string>

#include "api/os/descriptor.hpp"
#include "guest-tools/gpu/load_peermem.hpp"
#include "vfmgr/netlink/monitor.hpp"

namespace vfmgr::guest::gpu {

class ModuleWatch {
  public:
    // Open it before you observe, so that no change is missed. `root` is the prefix of every path.
    [[nodiscard]] static Result<ModuleWatch> open(std::string const& root,
                                                  std::string const& release);

    // Waits until a module or a GPU of NVIDIA's driver comes or goes, the list of modules is
    // replaced, or the deadline passes.
    [[nodiscard]] Result<Readiness> wait(Deadline deadline);

  private:
    ModuleWatch(EventMonitor monitor, std::string const& root, std::string const& release);
    [[nodiscard]] std::string now() const;

    EventMonitor monitor_;
    FileDescriptor lists_;  // inotify, where there is a folder to watch
    std::string modules_, folder_, driver_;
    std::string observed_;
};

// Keeps the module loaded across boots: by a line for systemd-modules-load or, where that runs too
// early, by vf-guest-peermem.service, which waits. Removes only what vf-guest set up. Blocks; any
// thread.

enum class BootBy {
    nobody,
    file,   // vf-guest's own in modules-load.d
    unit,   // vf-guest-peermem.service
    other,  // a line that vf-guest did not write, or the GPU operator
};

struct AtBoot {
    BootBy by = BootBy::nobody;
    std::string detail;  // one sentence
};

// Chooses how the module is loaded at boot, with the reason; changes nothing.
[[nodiscard]] AtBoot choose_at_boot(checks::Machine const& machine, std::string const& module);
// Sets up what choose_at_boot() chooses.
[[nodiscard]] Result<AtBoot> keep_at_boot(Places const& places, std::string const& module);
// Removes both the file and the unit, where they are vf-guest's own.
[[nodiscard]] Result<AtBoot> leave_at_boot(Places const& places);

}  // namespace vfmgr::guest::gpu
