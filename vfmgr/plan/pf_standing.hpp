// SPDX-License-Identifier: Apache-2.0
// Whether what answers at a PF's address is that PF. A PF is its permanent MAC or GUID, its address
// is where it stands: a card that is added, taken out or put elsewhere moves the addresses of
// others. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/pf_standing.hpp"
#include "vfmgr/plan/desired_state.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

struct PfStanding {
    Standing is = Standing::unknown;
    bool proved = false;               // `here`, and what was kept of it was read again
    PfIdentity known;                  // what is kept of it; empty: nothing was read yet
    std::optional<PfIdentity> other;   // of another device that is at its address
    std::optional<PciAddress> now_at;  // where the one that is known is
    std::optional<PciAddress> was_at;  // nothing is kept of this address, and all of that one
    bool operator==(PfStanding const&) const = default;
};

// `gone` is never said of a host that was not looked at as a whole.
[[nodiscard]] PfStanding standing_of(KernelView const& host, DesiredState const& desired,
                                     PciAddress const& pf);
// What is wrong and the command that mends it: pf_renumbered or pf_gone. Nothing otherwise.
[[nodiscard]] std::optional<Error> wrong_standing(PfStanding const& standing, PciAddress const& pf);
// The same, also of one without a driver, which is a state to be told, and no reason to refuse.
[[nodiscard]] std::optional<Error> standing_trouble(PfStanding const& standing,
                                                    PciAddress const& pf);
// Plans on the PF are for the device that was meant.
[[nodiscard]] Result<void> require_same_pf(HostView const& host, DesiredState const& desired,
                                           PciAddress const& pf);

// Addresses of PFs of which anything is kept: a spec, attachments, quarantines. Ascending.
[[nodiscard]] std::vector<PciAddress> kept_pfs(DesiredState const& desired);
// What is to be kept of the PF from now on; nothing where that is kept already, where it was not
// read, or where another PF is known by it. What was kept is completed, never replaced.
[[nodiscard]] std::optional<PfIdentity> identity_to_keep(KernelView const& host,
                                                         DesiredState const& desired,
                                                         PciAddress const& pf);

}  // namespace vfmgr
