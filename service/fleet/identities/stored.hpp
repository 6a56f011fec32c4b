// SPDX-License-Identifier: Apache-2.0
// Blocks and claims as etcd has them: to and from the values that identities are decided by. Pure;
// any thread.
#pragma once

#include <optional>
#include <string>

#include "service/fleet/etcd/settle.hpp"
#include "service/fleet/identities/blocks.hpp"
#include "service/fleet/identities/identity.hpp"
#include "service/fleet/identities/moves.hpp"
#include "service/fleet/state.hpp"

namespace vfmgr::fleet {

// Records whose keys are no identities are left out: a newer version has kinds that this one does
// not know.
[[nodiscard]] Snapshot snapshot_of(State const& state);

// Guarded by what it was decided from, and by the act of its first claim. The claims' acts are
// that act; one that only erases has none.
[[nodiscard]] GuardedTransaction transaction_of(Transition const& transition, MoveAct const& act);

// Gives a host one more block of a kind; absent: the ranges have none left. It is create-only, and
// compares the ranges that it is cut from and the host's record.
struct BlockRequest {
    IdentityKind kind = IdentityKind::mac;
    std::string network{};  // of addresses
    std::string host;
};
[[nodiscard]] std::optional<GuardedTransaction> grant_block(State const& state,
                                                            Snapshot const& fleet,
                                                            BlockRequest const& request,
                                                            MoveAct const& act);

// "mac/02:00:00:00:00:01", "address/train/10.0.0.7": the part of a key that names the identity.
[[nodiscard]] std::optional<Identity> identity_in(std::string_view key);

}  // namespace vfmgr::fleet
