// SPDX-License-Identifier: Apache-2.0
// Decides whether the device at a PF's address is that PF. The permanent MAC or GUID identifies a
// PF. Its address is only its place, which changes when a card is added, removed or moved. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/pf.hpp"
#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

struct PfStanding {
    Standing is = Standing::unknown;
    bool proved = false;               // `here`, and its stored identity was read again
    PfIdentity known;                  // its stored identity; empty: never read
    std::optional<PfIdentity> other;   // identity of another device at its address
    std::optional<PciAddress> now_at;  // the other address at which the PF is
    std::optional<PciAddress> was_at;  // the address under which the store has this PF
};

// Returns `gone` only when the whole host was observed.
[[nodiscard]] PfStanding standing_of(KernelView const& host, DesiredState const& desired,
                                     PciAddress const& pf);
// Returns pf_renumbered or pf_gone with the command that fixes it, or nothing.
[[nodiscard]] std::optional<Error> wrong_standing(PfStanding const& standing, PciAddress const& pf);
// The same, and also reports a PF without a driver, which is no reason to refuse a plan.
[[nodiscard]] std::optional<Error> standing_trouble(PfStanding const& standing,
                                                    PciAddress const& pf);
// Fails unless a plan on the PF would reach the intended device.
[[nodiscard]] Result<void> require_same_pf(HostView const& host, DesiredState const& desired,
                                           PciAddress const& pf);

// Returns the addresses of PFs with a spec, attachments or quarantines, ascending.
[[nodiscard]] std::vector<PciAddress> kept_pfs(DesiredState const& desired);
// Returns the identity to store for the PF; nothing when it is stored already, was not read, or
// belongs to another PF. A stored identity is completed, never replaced.
[[nodiscard]] std::optional<PfIdentity> identity_to_keep(KernelView const& host,
                                                         DesiredState const& desired,
                                                         PciAddress const& pf);

// Plans the end of the attachments of a PF that is gone. Only an admin's command ends them, never
// an observation that found nothing. The first command takes the VFs out of the VMs. Addresses,
// MACs and GUIDs stay reserved until a second command confirms, or until the PF is back and its VFs
// were observed clean. Pure.

// Returns the PF's attachments and quarantines, by VF.
[[nodiscard]] std::vector<Attachment> attachments_of_pf(DesiredState const& desired,
                                                        PciAddress const& pf);

// Compares the alias alone: another device of another owner may be at the VF's address by now.
[[nodiscard]] bool has_alias(std::vector<VmHostdev> const& hostdevs, Attachment const& attachment);

// Takes its VFs out of the VMs' XML. Refused while the PF is on this host, or when the host was not
// searched for it.
[[nodiscard]] Result<Plan> plan_gone(HostView const& host, DesiredState const& desired,
                                     PciAddress const& pf);
// Removes all that is stored of a PF that does not come back. Refused while it has attachments, or
// a VM's XML still names it. No steps.
[[nodiscard]] Result<Plan> plan_gone_confirmed(HostView const& host, DesiredState const& desired,
                                               PciAddress const& pf);

}  // namespace vfmgr
