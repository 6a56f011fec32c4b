// SPDX-License-Identifier: Apache-2.0
// The real kernel, in this process: reads sysfs and netlink, performs steps. Its only state: cached
// facts about PCI devices, open PFs, and when changes of VFs by other programs were first observed.
// Any number of threads; the callers hold the claims of PFs and VFs.
#pragma once

#include <map>
#include <mutex>

#include "api/types/time.hpp"
#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/pf_view.hpp"
#include "vfmgr/kernel/places.hpp"
#include "vfmgr/kernel/rdma_links.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// The PFs that an observation covers: all, one if it is there, or none.
[[nodiscard]] Result<std::vector<PciAddress>> pfs_in(LinuxKernelRoots const& roots,
                                                     KernelScope const& scope);

class LinuxKernel : public Kernel {
  public:
    explicit LinuxKernel(LinuxKernelRoots roots);
    [[nodiscard]] Result<KernelView> observe(KernelScope const& scope) override;
    [[nodiscard]] Result<Observed> perform(KernelStep const& step, Deadline deadline) override;
    [[nodiscard]] Result<std::vector<FirmwareCard>> read_firmware(
        std::optional<PciAddress> const& function) override;
    [[nodiscard]] Result<std::vector<PfTraffic>> read_traffic(
        std::optional<PciAddress> const& pf) override;

  private:
    [[nodiscard]] Result<Observed> configure(ConfigureVfs const& step, Deadline deadline);
    [[nodiscard]] std::optional<OpenPf> take_open(PciAddress const& pf);
    void detect_hang(PfState& pf, std::vector<NumVfsWriter> writers);
    void detect_held_removal(PfState& pf, Deadline now);

    LinuxKernelRoots roots_;
    DeviceBooks books_;
    LinkModules modules_;
    PlaceBook places_;
    std::mutex mutex_;
    std::map<std::pair<PciAddress, std::int32_t>, Deadline> writers_;  // mutex_; first observed
    std::map<PciAddress, Deadline> removals_;                          // mutex_; first observed
    std::map<PciAddress, OpenPf> open_;  // mutex_; PFs that no step is using
};

}  // namespace vfmgr
