// SPDX-License-Identifier: Apache-2.0
// Waits until udev has processed devices that appear: above all, until it has loaded their drivers.
// Owned by one thread.
#pragma once

#include <memory>
#include <set>

#include "api/types/time.hpp"
#include "vfmgr/kernel/sysfs.hpp"

struct udev;
struct udev_monitor;

namespace vfmgr {

class UdevWatch {
  public:
    // Open it before the devices appear. Where udev does not run there is nothing to wait for.
    [[nodiscard]] static Result<UdevWatch> open(LinuxKernelRoots const& roots);
    // Waits until udev has processed the "add" of each of these PCI devices, or until the deadline:
    // a rule of the host's own may block udev, and then the wait ends.
    void await_added(std::set<PciAddress> devices, Deadline deadline);

  private:
    struct Unref {
        void operator()(udev* context) const;
        void operator()(udev_monitor* monitor) const;
    };
    std::unique_ptr<udev, Unref> context_;
    std::unique_ptr<udev_monitor, Unref> monitor_;
};

}  // namespace vfmgr
