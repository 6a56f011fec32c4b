// SPDX-License-Identifier: Apache-2.0
// What a move asks for in each stage.
#include <fmt/format.h>

#include "api/types/json.hpp"
#include "api/types/reservation.hpp"
#include "service/fleet/drain/move.hpp"

namespace vfmgr::fleet {
namespace {

// Long enough for an orchestrator; then nobody needs to clean up after a fleet that is gone.
constexpr std::uint32_t kept_seconds = 24 * 3600;

std::string key_of(Move const& move, std::string_view what) {
    return fmt::format("move-{}-{}-{}", move.id, what, move.attempt);
}

HostCall keep(Move const& move, MoveEnd const& end) {
    ReservationSpec spec;
    spec.pool = move.spec.pool;
    spec.network = move.spec.network;
    spec.seconds = kept_seconds;
    spec.pfs = {{end.pf, 1}};
    return {end.host,
            "PUT",
            "/v1/reservations/" + reservation_of(move),
            to_json_text(JsonWriter::encode(spec)),
            {}};
}

HostCall drop(Move const& move, MoveEnd const& end) {
    return {end.host, "DELETE", "/v1/reservations/" + reservation_of(move)};
}

HostCall attach(Move const& move, MoveEnd const& end, std::string_view what) {
    auto spec = move.spec;
    spec.pf = end.pf;
    if (end.vf_kept) {
        spec.reservation = reservation_of(move);
        spec.pool.reset();  // the reservation's
    }
    return {end.host, "POST", "/v1/attachments", to_json_text(nlohmann::json(spec)),
            key_of(move, what)};
}

HostCall detach(Move const& move, MoveEnd const& end, std::string_view what) {
    return {end.host, "DELETE", "/v1/attachments/" + end.attachment, {}, key_of(move, what)};
}

HostCall prove(Move const& move, MoveEnd const& end, std::string_view what) {
    return {end.host,
            "POST",
            fmt::format("/v1/attachments/{}/verifications", end.attachment),
            {},
            key_of(move, what)};
}

}  // namespace

std::string reservation_of(Move const& move) {
    return "move-" + move.id;
}

std::optional<MoveAsk> ask_of(Move const& move) {
    switch (move.stage) {
        case MoveStage::planned:
            break;
        case MoveStage::holding:
            return keep(move, move.target);
        case MoveStage::detaching:
            return detach(move, move.source, "detach");
        case MoveStage::keeping:
            return keep(move, move.source);
        case MoveStage::giving_up:
            return IdentityAsk{IdentityStep::give_up};
        case MoveStage::claiming:
            return IdentityAsk{IdentityStep::claim};
        case MoveStage::migrating:
            return VmAsk{move.target.host};
        case MoveStage::attaching:
            return attach(move, move.target, "attach");
        case MoveStage::proving:
            return prove(move, move.target, "prove");
        case MoveStage::dropping:
            return drop(move, move.source);
        case MoveStage::unattaching:
            return detach(move, move.target, "unattach");
        case MoveStage::calling_back:
            return VmAsk{move.source.host};
        case MoveStage::reclaiming:
            return IdentityAsk{IdentityStep::restore};
        case MoveStage::reattaching:
            return attach(move, move.source, "reattach");
        case MoveStage::reproving:
            return prove(move, move.source, "reprove");
        case MoveStage::releasing:
            return drop(move, move.target);
        case MoveStage::done:
        case MoveStage::returned:
        case MoveStage::failed:
            break;
    }
    return std::nullopt;
}

}  // namespace vfmgr::fleet
