// SPDX-License-Identifier: Apache-2.0
// Ends attachments that nobody holds any more: one whose VM, or external holder, kept the VF at a
// detach and has released it since, those that a VM declared for one start, and those of a VM that
// libvirt no longer knows. Owned by the engine; control thread only.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "vfmgr/engine/command.hpp"
#include "vfmgr/engine/operations.hpp"

namespace vfmgr {

// How long libvirt may not know a VM until its attachments end: an orchestrator that replaces a
// VM's definition (virsh undefine, then define) has defined it again by then.
inline constexpr std::chrono::seconds vm_unknown_max{60};
// After how long a detach that was begun here and failed is begun again: often enough for an admin
// who waits, and too rare to fill the list of operations.
inline constexpr std::chrono::seconds end_again_after{60};

class Endings : public EnginePart {
  public:
    using Submit = std::function<void(Detach, Reply)>;

    Endings(Operations& operations, Submit submit)
        : EnginePart(operations), submit_(std::move(submit)) {}

    // Call it after each observation. `at_rest`: attachments that no operation is changing.
    void end_unheld(Control::State& state, std::set<std::string> const& at_rest);

  private:
    [[nodiscard]] std::set<std::string> of_unknown_vms(HostView const& host,
                                                       DesiredState const& desired);

    Submit const submit_;
    // Attachments whose detach was accepted, or waits for that, and until when none is begun anew.
    // A refused one is tried again after the next observation.
    std::map<std::string, Deadline> begun_;
    std::map<std::string, Deadline> unknown_until_;  // by the VM's UUID
};

}  // namespace vfmgr
