// SPDX-License-Identifier: Apache-2.0
// Compares the host with the desired state. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// One difference from the desired state.
struct Drift {
    PciAddress pf;
    std::optional<std::uint16_t> vf;  // absent: the PF itself
    // A member of VfSpec, or "num_vfs", "driver", "presence" of a VF; "device": the PF is gone, or
    // another is at its address; "hostdev": a running VM has lost the VF, whether the VF exists or
    // not; "persistent hostdev" of its XML; or the step that a host interface lacks.
    std::string what;
    std::string found;     // "7", "unbound": for people to read, and equal while it stays
    std::string sentence;  // "VF 2, attached to VM a, is gone"
    std::optional<std::string> attachment{};
    std::optional<std::string> vm{};
};
[[nodiscard]] std::string key_of(Drift const& drift);  // Identifies the drift, whatever its value.

// True when vfmgr manages the PF; and, below, when the PF could be read (null: it is absent).
[[nodiscard]] bool is_managed(DesiredPf const& desired_pf);
[[nodiscard]] bool can_be_judged(PfState const* pf);
// The same, or true when another device, or none, was observed at the address.
[[nodiscard]] bool can_be_judged(HostView const& host, DesiredState const& desired,
                                 PciAddress const& pf);

// Finds drift of the PFs that vfmgr manages and that were read: what can't be read is unknown, not
// different. A value that the driver does not report is no drift either, nor is one of
// `best_effort`. Ordered by PF address; within a PF, the PF itself, then attached VFs, then the
// others.
[[nodiscard]] std::vector<Drift> find_drift(HostView const& host, DesiredState const& desired);

// Returns its sentence with the possible cause: sentences on what else, according to configuration
// files, makes or changes VFs of that PF.
[[nodiscard]] std::string with_owners(Drift const& drift, std::vector<std::string> const& owners);

// Returns the settings of an attachment that its VF is observed not to have: drivers do not report
// all of them, and may refuse those of `best_effort`.
[[nodiscard]] VfSpec drifted_settings(Attachment const& attachment, VfState const& vf);

// Where a VM lacks the device of its attachment. Only a running VM can have lost it live.
struct MissingHostdev {
    bool live = false;
    bool config = false;
};
[[nodiscard]] MissingHostdev missing_hostdev(Attachment const& attachment, VmInfo const& vm);

// Returns attachments whose VMs were shut off at the attach and run with the VF now, in the form to
// be stored: from then on the VF can be missed in the live VM.
[[nodiscard]] std::vector<Attachment> gone_live(HostView const& host, DesiredState const& desired);

// True when a running VM has lost its VF. Each loss is a separate event.
[[nodiscard]] bool is_loss(Drift const& drift);

}  // namespace vfmgr
