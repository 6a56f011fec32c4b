// SPDX-License-Identifier: Apache-2.0
// Observes, makes and deletes the RDMA links that are configured by name. Any thread.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// Tells whether the module for a link type is loaded or loadable: from /sys/module, modules.alias
// and modules.builtin, which are read again only when depmod has rewritten them.
class LinkModules {
  public:
    // Absent when these can't be read.
    [[nodiscard]] std::optional<bool> there(LinuxKernelRoots const& roots, SoftRdmaType type);

  private:
    std::mutex mutex_;  // guards the members below
    std::filesystem::file_time_type written_at_{};
    std::map<SoftRdmaType, bool> loadable_;
};

[[nodiscard]] Result<HostNetworkView> view_host_network(LinuxKernelRoots const& roots,
                                                        LinkModules& modules, Deadline deadline);

[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots,
                                            AddSoftRdmaLink const& step, Deadline deadline);
// link_in_use while it has users, or its users are unknown, unless forced; while a process uses it,
// even if forced: the kernel would wait for that process, and the caller would hang.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots,
                                            RemoveSoftRdmaLink const& step, Deadline deadline);

}  // namespace vfmgr
