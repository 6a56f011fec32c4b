// SPDX-License-Identifier: Apache-2.0
// Applies whole documents of desired state: the body of the operation, on its thread. Owned by the
// engine.
#pragma once

#include <cstdint>

#include "vfmgr/engine/operations.hpp"

namespace vfmgr {

class Documents : public EnginePart {
  public:
    // RDMA links are made on `trusted_netdevs` alone; they outlive this object.
    Documents(Operations& operations, TrustedNetdevs const& trusted_netdevs)
        : EnginePart(operations), trusted_netdevs_(trusted_netdevs) {}

    // All or nothing: the steps of every part are undone if one fails. Only a change of a network,
    // a pool or the identities that comes in between can leave the PFs and RDMA links done and the
    // rest not; the operation then fails, and says so.
    void apply(Operation& operation, ReplaceDesired const& command, IfMatch const& if_match);

  private:
    // Performs the steps. Returns what to store of PFs and RDMA links.
    [[nodiscard]] Result<Batch> perform(Operation& operation, ReplaceDesired const& command,
                                        IfMatch const& if_match, std::uint64_t revision);

    TrustedNetdevs const& trusted_netdevs_;
};

// True if the change needs an operation: all but PFs and RDMA links is only stored.
[[nodiscard]] bool changes_host(DesiredState const& before, DesiredPlan const& planned);
// Adds what makes the networks, pools and identities of `before` into those of `after`; what
// changes gets `revision`.
void add_unclaimed(Batch& batch, DesiredState const& before, DesiredState const& after,
                   std::uint64_t revision);
// What a document claims.
[[nodiscard]] ClaimKeys claims_of(Snapshot const& now, ReplaceDesired const& command);

}  // namespace vfmgr
