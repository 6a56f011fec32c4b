// SPDX-License-Identifier: Apache-2.0
// A host of fakes that outlives its process, as a real host outlives vfmgrd: what it is, is kept in
// a file, and what happens to it is told in another, which a test reads whether the process runs or
// not. Any thread.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>

#include "api/os/descriptor.hpp"
#include "api/types/problem.hpp"
#include "tests/fakes/fake_hypervisor.hpp"
#include "tests/fakes/fake_kernel.hpp"

namespace vfmgr::fakes {

class KeptHost {
  public:
    KeptHost(FakeKernel& kernel, FakeHypervisor& hypervisor)
        : kernel_(kernel), hypervisor_(hypervisor) {}
    // From now on keeps the host in `file`; makes it what the file says, if there is one. Its stem
    // names the host. Beside it, FILE.log gets a line for each change, and one now:
    // {"host": "h1", "at": seconds of CLOCK_MONOTONIC,
    //  "vfs": [{"vf": "0000:01:00.0/3", "mac", "guid", "driver", "vms": [UUID]}]}
    // with the VFs that have a MAC, a GUID or a VM, live or in its persistent XML. Call it before
    // there are threads.
    [[nodiscard]] Result<void> open(std::filesystem::path file);
    // Writes both files if the host has changed. To be called before a change is answered. A
    // process that is killed has at most changed what nobody was told.
    void note();

  private:
    [[nodiscard]] Result<void> restore(std::string const& text);
    void write(HypervisorView const& vms, KernelView const& kernel);

    FakeKernel& kernel_;
    FakeHypervisor& hypervisor_;
    std::mutex mutex_;
    std::filesystem::path file_;  // empty: nothing is kept
    FileDescriptor log_;
    std::string told_, written_;  // the latest VFs, and the latest content
};

}  // namespace vfmgr::fakes
