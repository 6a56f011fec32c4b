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
    // another is at its address; "hostdev": a running VM has lost the VF, whether or not the VF
    // exists; "persistent hostdev": the VM's persistent XML lacks it; or the step that a host
    // interface lacks.
    std::string what;
    std::string found;     // "7", "unbound": for people; constant while the drift lasts
    std::string sentence;  // "VF 2, attached to VM a, is gone"
    std::optional<std::string> attachment{};
    std::optional<std::string> vm{};
};
[[nodiscard]] std::string key_of(Drift const& drift);  // Identifies the drift, whatever its value.

// True when vfmgr manages the PF.
[[nodiscard]] bool is_managed(DesiredPf const& desired_pf);
// True when the PF could be read; null: it is absent.
[[nodiscard]] bool can_be_judged(PfState const* pf);
// True in that case too, and when another device, or none, was observed at the address.
[[nodiscard]] bool can_be_judged(HostView const& host, DesiredState const& desired,
                                 PciAddress const& pf);

// Finds drift of the PFs that vfmgr manages and that were read: what can't be read is unknown, not
// different. A value that the driver does not report is no drift either, nor is one of
// `best_effort`. Ordered by PF address; within a PF, the PF itself, then attached VFs, then the
// others.
[[nodiscard]] std::vector<Drift> find_drift(HostView const& host, DesiredState const& desired);
// Finds that of one PF and its VFs.
[[nodiscard]] std::vector<Drift> find_drift_of(PciAddress const& pf, HostView const& host,
                                               DesiredState const& desired);

// Returns the drift's sentence with the possible cause. `owners`: sentences on what else, according
// to configuration files, makes or changes VFs of that PF.
[[nodiscard]] std::string with_owners(Drift const& drift, std::vector<std::string> const& owners);

// Returns the settings of an attachment that its VF was observed not to have. Leaves out settings
// that the driver does not report, and those of `best_effort`, which it may refuse.
[[nodiscard]] VfSpec drifted_settings(Attachment const& attachment, VfState const& vf);

// Where a VM lacks the device of its attachment. Only a running VM can have lost it live.
struct MissingHostdev {
    bool live = false;
    bool config = false;
};
[[nodiscard]] MissingHostdev missing_hostdev(Attachment const& attachment, VmInfo const& vm);

// Returns, in the form to be stored, attachments whose VM was renamed, or was shut off when the VF
// was attached and runs with it now: from then on a VF that is missing in the live VM is noticed.
[[nodiscard]] std::vector<Attachment> changed_by_vms(HostView const& host,
                                                     DesiredState const& desired);

// True when a running VM has lost its VF. Each loss is a separate event.
[[nodiscard]] bool is_loss(Drift const& drift);

}  // namespace vfmgr
