// SPDX-License-Identifier: Apache-2.0
// Selects VFs for requests that do not name them: by pool, network and reservation. Pure and
// stable: equal input gives an equal selection.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vfmgr/plan/choose.hpp"

namespace vfmgr {

// Returns why the PF does not match the selectors; nullopt: it does. `spec`: what is desired of it;
// nullptr: nothing.
[[nodiscard]] std::optional<std::string> mismatch(PoolSelectors const& select, PfInfo const& pf,
                                                  PfSpec const* spec);

// A request with everything that its pool and its reservation add.
struct Resolved {
    AttachmentSpec spec;
    Pool const* pool = nullptr;             // points into `desired`
    std::optional<std::uint16_t> placed{};  // the VF, if it was chosen with others
    [[nodiscard]] VfChoice choice() const {
        return {placed ? placed : spec.vf, pool, spec.reservation.value_or("")};
    }
};
[[nodiscard]] Result<Resolved> resolved(DesiredState const& desired, AttachmentSpec const& spec);

// Returns the host's PFs, best first, for a VF of `request` for that VM; each either with what is
// said for it, or refused with the reason. Best is the PF with the fewest VFs of the VM, so that a
// VM's VFs are spread over rails; then the one with the most free VFs.
struct Ranked {
    Candidate candidate;
    bool possible = false;
};
[[nodiscard]] std::vector<Ranked> ranked_pfs(HostView const& host, DesiredState const& desired,
                                             Resolved const& request, std::string const& vm_uuid);

[[nodiscard]] std::size_t vfs_of_vm(DesiredState const& desired, PciAddress const& pf,
                                    std::string const& vm_uuid);

// How many of the VFs that the request could get are taken, by whom in general: it names nothing.
[[nodiscard]] std::string taken_vfs(HostView const& host, DesiredState const& desired,
                                    Resolved const& request);

// The VFs that a reservation would keep, or the refusal. `requested_by` has its share.
[[nodiscard]] Result<std::vector<VfId>> vfs_to_reserve(HostView const& host,
                                                       DesiredState const& desired,
                                                       std::string const& name,
                                                       ReservationSpec const& spec,
                                                       std::string const& requested_by);

}  // namespace vfmgr
