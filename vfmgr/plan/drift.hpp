// SPDX-License-Identifier: Apache-2.0
// What the host is, beside what is wanted of it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// One thing that is not as it is wanted.
struct Drift {
    PciAddress pf;
    std::optional<std::uint16_t> vf;  // absent: the PF itself
    // A member of VfSpec, or "num_vfs", "driver", "presence" of a VF; "device": the PF is gone, or
    // another is at its address; "hostdev": a VM that runs has
    // lost it, whether it is there or not; "persistent hostdev" of its XML; or the step that a leg
    // of the host's lacks.
    std::string what;
    std::string found;     // "7", "unbound": as people read it, and equal while it stays
    std::string sentence;  // "VF 2, lent to VM a, is gone"
    std::optional<std::string> attachment;
    std::optional<std::string> vm_name;
    bool operator==(Drift const&) const = default;
};
[[nodiscard]] std::string key_of(Drift const& drift);  // the same thing, whatever its value

// vfmgr has a say in what it is; and it could be read (null: it is not there).
[[nodiscard]] bool is_managed(DesiredPf const& wanted);
[[nodiscard]] bool can_be_judged(PfState const* pf);
// The same, or it was seen that another device is there, or none.
[[nodiscard]] bool can_be_judged(HostView const& host, DesiredState const& desired,
                                 PciAddress const& pf);

// Of the PFs that vfmgr manages and that were read: what can't be read is unknown, not different.
// A value that the driver does not report is no drift either, nor is one of `best_effort`.
// In order: PFs by address; of each the PF itself, VFs that are lent, the others.
[[nodiscard]] std::vector<Drift> find_drift(HostView const& host, DesiredState const& desired);

// Its sentence, with who may have done it: sentences on who else, by configuration files, makes or
// changes VFs of that PF.
[[nodiscard]] std::string told_with_owners(Drift const& drift,
                                           std::vector<std::string> const& owners);

// The settings of a lease that its VF is seen without: drivers do not report all, and may refuse
// those of `best_effort`.
[[nodiscard]] VfSpec drifted_settings(Attachment const& lease, VfState const& vf);

// Where a VM lacks the device of its lease. Only a VM that runs can have lost it live.
struct MissingHostdev {
    bool live = false;
    bool config = false;
};
[[nodiscard]] MissingHostdev missing_hostdev(Attachment const& lease, VmInfo const& vm);

// Leases of VMs that were shut off then, and run with the VF now: as they are to be kept, so that
// it can be missed from there.
[[nodiscard]] std::vector<Attachment> gone_live(HostView const& host, DesiredState const& desired);

// A VM that runs has lost its VF: each time is of its own.
[[nodiscard]] bool is_loss(Drift const& drift);

}  // namespace vfmgr
