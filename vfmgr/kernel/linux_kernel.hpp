// SPDX-License-Identifier: Apache-2.0
// The real kernel, in this process: reads sysfs and netlink, performs steps. No state but what was
// looked up of PCI devices, PFs that are open, and since when others change VFs; any number of
// threads, the claims of PFs and VFs being the callers'.
#pragma once

#include <map>
#include <mutex>

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/open_pf.hpp"
#include "vfmgr/kernel/pf_view.hpp"
#include "vfmgr/kernel/rdma_links.hpp"

namespace vfmgr {

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
    void look_for_hang(PfState& pf);
    void look_for_held_removal(PfState& pf, Deadline now);

    LinuxKernelRoots roots_;
    DeviceBooks books_;
    LinkModules modules_;
    std::mutex mutex_;
    std::map<std::pair<PciAddress, std::int32_t>, Deadline> writers_;  // mutex_; first seen
    std::map<PciAddress, Deadline> removals_;                          // the same
    std::map<PciAddress, OpenPf> open_;  // mutex_; while no step uses it
};

}  // namespace vfmgr
