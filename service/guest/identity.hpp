// SPDX-License-Identifier: Apache-2.0
// Which VM calls on the guest plane. Requests are answered from what is published, and cost libvirt
// nothing; it is asked where it has told of a change that is not published yet, and about one VM
// before a request changes something. May block; any thread.
#pragma once

#include <vector>

#include "vfmgr/engine/control.hpp"
#include "vfmgr/hypervisor/hypervisor.hpp"
#include "vfmgr/hypervisor/vm_identity.hpp"

namespace vfmgr {

// The last change that libvirt told of, and what was published of its VMs.
struct KnownVms {
    HypervisorView const& published;
    Time changed_at{};
};

// not_found when no running VM has this CID.
[[nodiscard]] Result<VmIdentity> identify_vm(KnownVms const& known, Hypervisor& hypervisor,
                                             std::uint32_t cid);
// not_found when this life of the VM is over.
[[nodiscard]] Result<void> confirm_vm(Hypervisor& hypervisor, VmIdentity const& vm,
                                      std::uint32_t cid);

// The running VM in this life of it, as published; nothing when that is over. Pure.
[[nodiscard]] VmInfo const* find_life(HypervisorView const& view, VmIdentity const& vm);
// A VM's life that has ended, or that has another CID now.
struct EndedLife {
    std::string uuid;
    std::uint32_t cid = 0;
    bool operator==(EndedLife const&) const = default;
};
// Between two views. Pure.
[[nodiscard]] std::vector<EndedLife> ended_lives(HypervisorView const& before,
                                                 HypervisorView const& now);
// The runs that were begun before `at` for those, which nobody can answer any more. Pure.
[[nodiscard]] std::vector<std::string> runs_of(std::vector<EndedLife> const& ended,
                                               Snapshot const& now, Time at);

}  // namespace vfmgr
