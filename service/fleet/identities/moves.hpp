// SPDX-License-Identifier: Apache-2.0
// An identity that moves from one host to another, step by step. Each step is one transaction on
// etcd: it compares what it was decided from, so a leader that is no longer one, or that read an
// old state, changes nothing. Pure.
//
//   owned by A --begin--> giving_up --acknowledged by A--> given_up --claim--> held by B
//        ^                    |                                |                   |
//        +------abort---------+------------- abort ------------+                   |
//        +---- given_up <--acknowledged by B-- giving_up <------begin, to A -------+
//
// Whether a host owns it: it has a claim that is held, or the block and there is no claim. A is
// asked to give it up by its document (derive.hpp), and refuses while it is in use. B may use it
// only by a document of a snapshot with the held claim. So there is no time at which both may.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/types/problem.hpp"
#include "service/fleet/identities/identity.hpp"

namespace vfmgr::fleet {

// The key must have this revision; absent: there must be no such key.
struct KeyCompare {
    std::string key;
    std::optional<std::uint64_t> mod_revision;
    bool operator==(KeyCompare const&) const = default;
};

// Absent: the key is deleted.
struct ClaimWrite {
    std::string key;
    std::optional<Claim> claim;
    bool operator==(ClaimWrite const&) const = default;
};

// The election's key is compared besides, as in every transaction of the leader.
struct Transition {
    std::vector<KeyCompare> compares;
    std::vector<ClaimWrite> writes;
    bool operator==(Transition const&) const = default;
};

// Who decides, for whom, and when: what each written claim records.
struct MoveAct {
    std::string act;  // random, once for each decision: finds out whether it was done
    Time at{};
};

// Who owns it as etcd has it; empty: nobody at the moment, or it is in no block.
[[nodiscard]] std::string owner_of(Snapshot const& fleet, Identity const& identity);

struct MoveTarget {
    std::string host;
    std::string public_key;  // of the host
    std::string vm;          // UUID
};
// The owner must give it up. conflict: it is on its way already, or is the target's.
[[nodiscard]] Result<Transition> begin_move(Snapshot const& fleet, Identity const& identity,
                                            MoveTarget const& target, MoveAct const& act);

// How it is known that `from` has it no more.
struct Acknowledged {
    std::string host;
    std::uint64_t generation = 0;  // of the document that the host answered to
};
// By an operator or a fencing agent who states that the host is off.
struct FencedHost {
    std::string host;
    std::uint64_t record_revision = 0;  // of hosts/<host>, which has the fence
};
using GivenUp = std::variant<Acknowledged, FencedHost>;
// A claim that is released goes.
// unavailable: the host has acknowledged an older document only. Ask again later.
[[nodiscard]] Result<Transition> note_given_up(Snapshot const& fleet, Identity const& identity,
                                               GivenUp const& evidence, MoveAct const& act);

// Now the target has it. If it is in the target's block, the claim goes.
[[nodiscard]] Result<Transition> claim_it(Snapshot const& fleet, Identity const& identity,
                                          MoveAct const& act);

// What an abort leads to.
enum class AbortOutcome {
    back,        // the transition restores the owner before
    move_there,  // the target has it, and may use it: only a move in the other direction returns it
    nothing,     // no move is under way
};
struct Abort {
    AbortOutcome outcome = AbortOutcome::nothing;
    std::optional<Transition> transition;  // with `back`
};
[[nodiscard]] Abort abort_move(Snapshot const& fleet, Identity const& identity, MoveAct const& act);

}  // namespace vfmgr::fleet
