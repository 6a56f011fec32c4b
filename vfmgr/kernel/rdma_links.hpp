// SPDX-License-Identifier: Apache-2.0
// RDMA links that are asked for by name: what there is of them, making and deleting them. Any
// thread.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>

#include "vfmgr/kernel/kernel.hpp"
#include "vfmgr/kernel/sysfs.hpp"

namespace vfmgr {

// Whether the module that makes links of a type is loaded, or can be: from /sys/module,
// modules.alias and modules.builtin, which are read again only when depmod has written them anew.
class LinkModules {
  public:
    // Absent when these can't be read.
    [[nodiscard]] std::optional<bool> there(LinuxKernelRoots const& roots, SoftRdmaType type);

  private:
    std::mutex mutex_;  // guards what follows
    std::filesystem::file_time_type written_at_{};
    std::map<SoftRdmaType, bool> loadable_;
};

[[nodiscard]] Result<HostNetworkView> view_host_network(LinuxKernelRoots const& roots,
                                                        LinkModules& modules, Deadline deadline);

[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots,
                                            AddSoftRdmaLink const& step, Deadline deadline);
// link_in_use while anybody uses it, or nobody can say, unless forced; while a process does, forced
// or not: the kernel would wait for it, and whoever asks would hang.
[[nodiscard]] Result<Observed> perform_step(LinuxKernelRoots const& roots,
                                            RemoveSoftRdmaLink const& step, Deadline deadline);

}  // namespace vfmgr
