// SPDX-License-Identifier: Apache-2.0
// Moves a VM's host devices in its PCI tree: plans again under the claim of the VM, from its XML.
#include "vfmgr/engine/attachments.hpp"
#include "vfmgr/engine/state.hpp"
#include "vfmgr/plan/guest_topology.hpp"

namespace vfmgr {

void Attachments::place_hostdevs(Operation& operation, PlaceInVm const& command) {
    operations_.run(operation, {VmKey{command.vm}}, [&]() -> Result<Batch> {
        VFMGR_TRY(HostView const host, observe_for(seams(), HostNetwork{}));
        VFMGR_TRY(Plan const plan, plan_placing(host, command.vm, command.back));
        VFMGR_CHECK(operations_.perform(operation, plan, OnFailure::undo));
        return Batch{};
    });
}

}  // namespace vfmgr
