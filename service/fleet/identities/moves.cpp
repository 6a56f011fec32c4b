// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/identities/moves.hpp"

#include <fmt/format.h>

namespace vfmgr::fleet {
namespace {

tl::unexpected<Error> conflicting(Identity const& identity, std::string const& what,
                                  std::string const& remedy) {
    return fail(Problem::conflict, fmt::format("{} {}", described(identity), what), remedy);
}

// The block's key is compared as well: a block that its host gave up meanwhile owns nothing.
Transition transition_of(Snapshot const& fleet, Identity const& identity,
                         std::optional<Claim> claim) {
    Transition transition;
    auto const key = claim_key(identity);
    auto const* const kept = claim_of(fleet, identity);
    transition.compares.push_back({key, kept ? std::optional(kept->revision) : std::nullopt});
    if (auto const* const block = block_of(fleet, identity))
        transition.compares.push_back({block_key(block->block.first), block->revision});
    transition.writes.push_back({key, std::move(claim)});
    return transition;
}

bool is_at_home(Snapshot const& fleet, Identity const& identity, std::string const& host) {
    auto const* const block = block_of(fleet, identity);
    return block && block->block.host == host;
}

Claim stamped(Claim claim, ClaimState state, MoveAct const& act) {
    claim.state = state;
    claim.act = act.act;
    claim.at = act.at;
    return claim;
}

Result<Snapshot::KeptClaim const*> claim_in(Snapshot const& fleet, Identity const& identity,
                                            ClaimState state) {
    auto const* const kept = claim_of(fleet, identity);
    if (kept && kept->claim.state == state) return kept;
    return conflicting(
        identity,
        kept ? fmt::format("is {} on the way to {}, not {}", enum_name(kept->claim.state),
                           kept->claim.host, enum_name(state))
             : "is not on its way to another host",
        "vfctl fleet identities shows where it is");
}

}  // namespace

std::string owner_of(Snapshot const& fleet, Identity const& identity) {
    if (auto const* const kept = claim_of(fleet, identity))
        return kept->claim.state == ClaimState::held ? kept->claim.host : std::string();
    auto const* const block = block_of(fleet, identity);
    return block ? block->block.host : std::string();
}

Result<Transition> begin_move(Snapshot const& fleet, Identity const& identity,
                              MoveTarget const& target, MoveAct const& act) {
    auto const* const kept = claim_of(fleet, identity);
    if (kept && kept->claim.state != ClaimState::held)
        return conflicting(
            identity,
            fmt::format("is on its way from {} to {} already", kept->claim.from, kept->claim.host),
            "wait for that move, or abort it");
    auto const owner = owner_of(fleet, identity);
    if (owner.empty())
        return conflicting(identity, "is in no host's block",
                           "let the host that has it choose another one at its next attach");
    if (owner == target.host)
        return conflicting(identity, fmt::format("is {}'s already", owner), "name another host");
    auto const& owner_key =
        kept ? kept->claim.public_key : block_of(fleet, identity)->block.public_key;
    return transition_of(fleet, identity,
                         Claim{identity, ClaimState::giving_up, target.host, owner, target.vm,
                               act.act, act.at, target.public_key, owner_key});
}

Result<Transition> note_given_up(Snapshot const& fleet, Identity const& identity,
                                 GivenUp const& evidence, MoveAct const& act) {
    VFMGR_TRY(auto const* const kept, claim_in(fleet, identity, ClaimState::giving_up));
    auto const& host =
        std::visit([](auto const& one) -> auto const& { return one.host; }, evidence);
    if (host != kept->claim.from)
        return conflicting(identity,
                           fmt::format("is {}'s to give up, not {}'s", kept->claim.from, host),
                           "ask that host");
    if (auto const* const answer = std::get_if<Acknowledged>(&evidence);
        answer && answer->generation < kept->revision)
        return fail(Problem::unavailable,
                    fmt::format("{} acknowledged generation {}; {} is to be given up since {}",
                                host, answer->generation, described(identity), kept->revision),
                    "push its identities again");
    // Released, it is nobody's any more: the next block or claim may have it.
    std::optional<Claim> next;
    if (!kept->claim.host.empty()) next = stamped(kept->claim, ClaimState::given_up, act);
    auto transition = transition_of(fleet, identity, std::move(next));
    if (auto const* const fence = std::get_if<FencedHost>(&evidence))
        transition.compares.push_back({"hosts/" + fence->host, fence->record_revision});
    return transition;
}

Result<Transition> claim_it(Snapshot const& fleet, Identity const& identity, MoveAct const& act) {
    VFMGR_TRY(auto const* const kept, claim_in(fleet, identity, ClaimState::given_up));
    if (is_at_home(fleet, identity, kept->claim.host))
        return transition_of(fleet, identity, std::nullopt);
    return transition_of(fleet, identity, stamped(kept->claim, ClaimState::held, act));
}

Abort abort_move(Snapshot const& fleet, Identity const& identity, MoveAct const& act) {
    auto const* const kept = claim_of(fleet, identity);
    if (!kept) return {};
    if (kept->claim.state == ClaimState::held) return {AbortOutcome::move_there, {}};
    auto const& from = kept->claim.from;
    if (is_at_home(fleet, identity, from))
        return {AbortOutcome::back, transition_of(fleet, identity, std::nullopt)};
    auto restored = stamped(kept->claim, ClaimState::held, act);
    std::swap(restored.from, restored.host);
    std::swap(restored.from_public_key, restored.public_key);
    return {AbortOutcome::back, transition_of(fleet, identity, std::move(restored))};
}

}  // namespace vfmgr::fleet
