// SPDX-License-Identifier: Apache-2.0
// Waits until udev has processed devices that appear: above all, until it has loaded their drivers.
// Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "api/types/time.hpp"
#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/pf_view.hpp"
#include "vfmgr/kernel/rdma_links.hpp"
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

// The real kernel, in this process: reads sysfs and netlink, performs steps. Its only state: cached
// facts about PCI devices, open PFs, and when changes of VFs by other programs were first observed.
// Any number of threads; the callers hold the claims of PFs and VFs.

class LinuxKernel : public Kernel {
  public:
    explicit LinuxKernel(LinuxKernelRoots roots);
    [[nodiscard]] Result<KernelView> observe(KernelScope const& scope) override;
    [[nodiscard]] Result<Observed> perform(KernelStep const& step, Deadline deadline) override;
    [[nodiscard]] Result<std::vector<FirmwareCard>> read_firmware(
        std::optional<PciAddress> const& function) override;

  private:
    [[nodiscard]] Result<Observed> configure(ConfigureVfs const& step, Deadline deadline);
    [[nodiscard]] std::optional<OpenPf> take_open(PciAddress const& pf);
    void detect_hang(PfState& pf);
    void detect_held_removal(PfState& pf, Deadline now);

    LinuxKernelRoots roots_;
    DeviceBooks books_;
    LinkModules modules_;
    std::mutex mutex_;
    std::map<std::pair<PciAddress, std::int32_t>, Deadline> writers_;  // mutex_; first observed
    std::map<PciAddress, Deadline> removals_;                          // mutex_; first observed
    std::map<PciAddress, OpenPf> open_;  // mutex_; PFs that no step is using
};

}  // namespace vfmgr
