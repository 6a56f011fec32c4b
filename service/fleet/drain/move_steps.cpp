// SPDX-License-Identifier: Apache-2.0
// How a move goes on after each answer.
#include <fmt/format.h>

#include "service/fleet/drain/move.hpp"

namespace vfmgr::fleet {
namespace {

// A kept VF is free again when its reservation expires, so the end need not wait for the answer.
constexpr std::uint32_t unknown_releases_max = 10;

bool is_way_back(MoveStage stage) {
    return stage >= MoveStage::unattaching && stage <= MoveStage::releasing;
}

// The stage that follows when this one is done; that of a VM that runs.
MoveStage next_stage(MoveStage stage) {
    if (stage == MoveStage::releasing) return MoveStage::returned;
    return static_cast<MoveStage>(static_cast<int>(stage) + 1);
}

// Where the way back begins if this stage was the last that was done.
MoveStage way_back_after(MoveStage stage) {
    switch (stage) {
        case MoveStage::planned:
            return MoveStage::returned;
        case MoveStage::holding:
            return MoveStage::releasing;
        case MoveStage::detaching:
        case MoveStage::keeping:
            return MoveStage::reattaching;
        case MoveStage::giving_up:
        case MoveStage::claiming:
            return MoveStage::reclaiming;
        case MoveStage::migrating:
            return MoveStage::calling_back;
        case MoveStage::attaching:
        case MoveStage::proving:
            return MoveStage::unattaching;
        default:
            return next_stage(stage);
    }
}

// Where a refused stage leads to, if it undid what it began.
MoveStage way_back_from(MoveStage stage, bool turning_back) {
    switch (stage) {
        case MoveStage::holding:
            return MoveStage::releasing;
        case MoveStage::detaching:
            return MoveStage::reattaching;
        case MoveStage::keeping:
            return turning_back ? MoveStage::reattaching : MoveStage::giving_up;
        case MoveStage::giving_up:
        case MoveStage::claiming:
        case MoveStage::migrating:
            return MoveStage::reclaiming;
        // The VM is at the target: only an admin can want it back.
        case MoveStage::attaching:
            return turning_back ? MoveStage::calling_back : MoveStage::failed;
        case MoveStage::proving:
            return turning_back ? MoveStage::unattaching : MoveStage::failed;
        case MoveStage::dropping:
            return MoveStage::done;
        case MoveStage::releasing:
            return MoveStage::returned;
        default:
            return MoveStage::failed;
    }
}

Move entered(Move move, MoveStage stage, std::string const& because, Stamp const& stamp) {
    bool const proves = stage == MoveStage::proving || stage == MoveStage::reproving;
    if (proves && !move.running) stage = next_stage(stage);
    if (stage == MoveStage::dropping && !move.source.vf_kept) stage = MoveStage::done;
    if (stage == MoveStage::releasing && !move.target.vf_kept) stage = MoveStage::returned;
    if (stage == MoveStage::failed) move.failed_at = move.stage;
    move.unknown = 0;
    move.stage = stage;
    // Before the first of a stage's calls, since nobody knows afterwards whether one arrived.
    if (stage == MoveStage::holding) move.target.vf_kept = true;
    if (stage == MoveStage::keeping) move.source.vf_kept = true;
    if (stage == MoveStage::giving_up || stage == MoveStage::reclaiming)
        move.identities_at = IdentitiesAt::under_way;
    if (has_ended(move)) move.residue = residue_of(move);
    move.marks.push_back({stage, stamp.at, because});
    move.act = stamp.act;
    return move;
}

// Records what a stage did.
void note_done(Move& move, MoveAnswer const& answer) {
    switch (move.stage) {
        case MoveStage::detaching:
            move.source.attachment.clear();
            break;
        case MoveStage::unattaching:
            move.target.attachment.clear();
            break;
        case MoveStage::claiming:
            move.identities_at = IdentitiesAt::target;
            break;
        case MoveStage::reclaiming:
            move.identities_at = IdentitiesAt::source;
            break;
        case MoveStage::migrating:
            move.vm_at_target = true;
            break;
        case MoveStage::calling_back:
            move.vm_at_target = false;
            break;
        // An attachment uses up the reservation that it took its VF from.
        case MoveStage::attaching:
            move.target.attachment = answer.attachment;
            move.target.vf_kept = false;
            break;
        case MoveStage::reattaching:
            move.source.attachment = answer.attachment;
            move.source.vf_kept = false;
            break;
        case MoveStage::dropping:
            move.source.vf_kept = false;
            break;
        case MoveStage::releasing:
            move.target.vf_kept = false;
            break;
        default:
            break;
    }
}

// There is nothing left to delete: an earlier call did it, or somebody else.
bool is_done_already(Move const& move, MoveAnswer const& answer) {
    if (!answer.error || answer.error->problem != Problem::not_found) return false;
    return move.stage == MoveStage::detaching || move.stage == MoveStage::unattaching ||
           move.stage == MoveStage::dropping || move.stage == MoveStage::releasing;
}

Move after_success(Move move, MoveAnswer const& answer, Stamp const& stamp) {
    auto const stage = move.stage;
    note_done(move, answer);
    bool const back = move.turning_back && !is_way_back(stage);
    return entered(std::move(move), back ? way_back_after(stage) : next_stage(stage), "", stamp);
}

Move after_refusal(Move move, MoveAnswer const& answer, Stamp const& stamp) {
    auto const because = answer.error ? answer.error->detail : std::string("it was refused");
    if (move.stage == MoveStage::detaching) {
        if (!answer.still_attached) return move;  // asked again, until it is known
        if (*answer.still_attached)
            return entered(std::move(move), MoveStage::reproving, because, stamp);
        move.source.attachment.clear();
    }
    if (move.stage == MoveStage::holding) move.target.vf_kept = false;
    if (move.stage == MoveStage::keeping) move.source.vf_kept = false;
    auto const stage = way_back_from(move.stage, move.turning_back);
    return entered(std::move(move), stage, because, stamp);
}

Move after_unknown(Move move, Stamp const& stamp) {
    ++move.unknown;
    move.act = stamp.act;
    if (move.unknown < unknown_releases_max) return move;
    auto const because = "the host did not answer; the VF is free when its reservation expires";
    if (move.stage == MoveStage::releasing)
        return entered(std::move(move), MoveStage::returned, because, stamp);
    if (move.stage == MoveStage::dropping)
        return entered(std::move(move), MoveStage::done, because, stamp);
    if (move.stage == MoveStage::holding && move.turning_back)
        return entered(std::move(move), MoveStage::releasing, "", stamp);
    return move;
}

tl::unexpected<Error> can_not(Move const& move, std::string const& why, std::string const& remedy) {
    return fail(Problem::conflict, fmt::format("move {} {}", move.id, why), remedy);
}

// What it is known by: given in the request, whatever was chosen when it was attached.
AttachmentSpec with_identities(Attachment const& attachment) {
    auto spec = attachment.spec;
    spec.vm = attachment.vm_uuid;
    spec.pf.reset();
    spec.vf.reset();
    spec.reservation.reset();
    spec.near.reset();  // the rail decides
    spec.adopt.reset();
    spec.address = attachment.address;
    spec.settings.mac = attachment.settings.mac;
    spec.settings.node_guid = attachment.settings.node_guid;
    spec.settings.port_guid = attachment.settings.port_guid;
    // It stands without a proof: no VF at all is worse for a VM than one that is not proved yet.
    spec.verify = VerifyMode::none;
    return spec;
}

IdentityList identities_of(AttachmentSpec const& spec) {
    IdentityList all;
    if (spec.settings.mac) all.macs.push_back(*spec.settings.mac);
    for (auto const& guid : {spec.settings.node_guid, spec.settings.port_guid})
        if (guid && (all.guids.empty() || all.guids.front() != *guid)) all.guids.push_back(*guid);
    if (spec.address && spec.network) all.addresses.push_back({*spec.network, *spec.address});
    return all;
}

}  // namespace

bool has_ended(Move const& move) {
    return move.stage == MoveStage::done || move.stage == MoveStage::returned ||
           move.stage == MoveStage::failed;
}

Result<Move> planned_move(Attachment const& attachment, MoveOrder const& order) {
    auto const what = fmt::format("attachment {} of {}", attachment.id, order.source);
    if (attachment.holder)
        return fail(Problem::unsupported,
                    fmt::format("{} is {}'s, which is no VM of libvirt", what, attachment.vm),
                    "detach it there, and attach a VF on the other host");
    if (attachment.state != AttachmentState::attached)
        return fail(Problem::conflict, fmt::format("{} is {}", what, enum_name(attachment.state)),
                    "wait until the operation on it ended");
    if (order.source == order.target)
        return fail(Problem::conflict, fmt::format("{} is on {} already", what, order.target),
                    "name another host");
    Move move;
    move.id = order.id;
    move.drain = order.drain;
    move.source = {order.source, attachment.vf.pf, attachment.id, false};
    move.target = {order.target, order.target_pf, "", false};
    move.rail = order.rail;
    move.vm = attachment.vm;
    move.vm_uuid = attachment.vm_uuid;
    move.running = order.running;
    move.spec = with_identities(attachment);
    move.identities = identities_of(move.spec);
    move.requested_by = order.requested_by;
    return move;
}

Move begun(Move move, Stamp const& stamp) {
    if (move.stage != MoveStage::planned) return move;
    return entered(std::move(move), MoveStage::holding, "", stamp);
}

Move after(Move move, MoveAnswer const& answer, Stamp const& stamp) {
    if (!ask_of(move)) return move;
    if (answer.outcome == Outcome::unknown) return after_unknown(std::move(move), stamp);
    if (answer.outcome == Outcome::success || is_done_already(move, answer))
        return after_success(std::move(move), answer, stamp);
    return after_refusal(std::move(move), answer, stamp);
}

Result<Move> turned_back(Move move, std::string const& because, Stamp const& stamp) {
    auto const at = move.failed_at.value_or(move.stage);
    if (at == MoveStage::done || at == MoveStage::dropping)
        return can_not(move, "is done", "move the VM in the other direction");
    if (at == MoveStage::returned || is_way_back(at) || move.turning_back)
        return can_not(move, "is on its way back already",
                       move.stage == MoveStage::failed ? "resume it" : "wait until it ended");
    move.turning_back = true;
    move.act = stamp.act;
    if (move.stage == MoveStage::failed) {
        move.stage = at;
        move.failed_at.reset();
        ++move.attempt;
        auto const stage = way_back_from(at, true);
        return entered(std::move(move), stage, because, stamp);
    }
    switch (at) {
        case MoveStage::planned:
            return entered(std::move(move), MoveStage::returned, because, stamp);
        // Whatever these did so far, the way back finds it in etcd, or asks the orchestrator.
        case MoveStage::giving_up:
        case MoveStage::claiming:
        case MoveStage::migrating: {
            auto const stage = way_back_after(at);
            return entered(std::move(move), stage, because, stamp);
        }
        default:
            break;
    }
    move.marks.push_back({move.stage, stamp.at, because});
    return move;
}

Result<Move> resumed(Move move, Stamp const& stamp) {
    if (move.stage != MoveStage::failed || !move.failed_at)
        return can_not(move, "has not failed", "vfctl fleet moves shows what it does");
    auto const stage = *move.failed_at;
    move.failed_at.reset();
    move.residue.clear();
    ++move.attempt;
    return entered(std::move(move), stage, "resumed", stamp);
}

}  // namespace vfmgr::fleet
