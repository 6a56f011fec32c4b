// SPDX-License-Identifier: Apache-2.0
// Identifies the VM that calls the guest plane. The published view answers, so that a request costs
// libvirt nothing. libvirt is queried only after it has announced a change that is not published
// yet, and about a single VM before a request changes something. May block; any thread.
#pragma once

#include <vector>

#include "vfmgr/engine/control.hpp"
#include "vfmgr/hypervisor/hypervisor.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// The published view of VMs, and the time of libvirt's last event.
struct KnownVms {
    HypervisorView const& published;
    Time changed_at{};
};

// Fails with not_found if no running VM has this CID.
[[nodiscard]] Result<VmIdentity> identify_vm(KnownVms const& known, Hypervisor& hypervisor,
                                             std::uint32_t cid);
// Fails with not_found if the VM has stopped or restarted since.
[[nodiscard]] Result<void> confirm_vm(Hypervisor& hypervisor, VmIdentity const& vm,
                                      std::uint32_t cid);

// Finds the running VM if it has not restarted since; null otherwise. Pure.
[[nodiscard]] VmInfo const* find_life(HypervisorView const& view, VmIdentity const& vm);
// One run of a VM, from start to stop, that has ended or whose VM has another CID now.
struct EndedLife {
    std::string uuid;
    std::uint32_t cid = 0;
    bool operator==(EndedLife const&) const = default;
};
// Returns the lives that ended between two views. Pure.
[[nodiscard]] std::vector<EndedLife> ended_lives(HypervisorView const& before,
                                                 HypervisorView const& now);
// Returns the verification runs of those VMs that began before `at`; no guest can answer them any
// more. Pure.
[[nodiscard]] std::vector<std::string> runs_of(std::vector<EndedLife> const& ended,
                                               Snapshot const& now, Time at);

}  // namespace vfmgr
