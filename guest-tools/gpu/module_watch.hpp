// SPDX-License-Identifier: Apache-2.0
// Waits until other modules are loaded, or are there to be loaded: by the kernel's own events, and
// by depmod putting a new list in place, never by time. Owned by one thread.
#pragma once

#include <string>

#include "api/types/file_descriptor.hpp"
#include "vfmgr/netlink/monitor.hpp"

namespace vfmgr::guest::gpu {

class ModuleWatch {
  public:
    // Open it before the look whose result is waited to change. `root` is before every path.
    [[nodiscard]] static Result<ModuleWatch> open(std::string root, std::string const& release);

    // Until a module or a GPU of NVIDIA's driver came or went, or the list of modules was replaced;
    // or the deadline.
    [[nodiscard]] Result<Readiness> wait(Deadline deadline);

  private:
    ModuleWatch(EventMonitor monitor, FileDescriptor lists, std::string modules, std::string list,
                std::string driver)
        : monitor_(std::move(monitor)),
          lists_(std::move(lists)),
          modules_(std::move(modules)),
          list_(std::move(list)),
          driver_(std::move(driver)) {}
    [[nodiscard]] std::string now() const;

    EventMonitor monitor_;
    FileDescriptor lists_;  // inotify, where there is a folder to watch
    std::string modules_, list_, driver_;
    std::string seen_;
};

}  // namespace vfmgr::guest::gpu
