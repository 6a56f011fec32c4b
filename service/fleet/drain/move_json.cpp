// SPDX-License-Identifier: Apache-2.0
#include "api/types/json.hpp"
#include "service/fleet/drain/move.hpp"

namespace vfmgr {
extern template struct Json<IdentityList>;
}  // namespace vfmgr

namespace vfmgr::fleet {

template <class F, Of<MoveEnd> V>
void fields(F& f, V& end) {
    f.value("host", end.host);
    f.value("pf", end.pf);
    f.value("attachment", end.attachment);
    f.value("vf_kept", end.vf_kept);
}

template <class F, Of<MoveMark> V>
void fields(F& f, V& mark) {
    f.value("stage", mark.stage);
    f.value("at", mark.at);
    f.value("because", mark.because);
}

template <class F, Of<Move> V>
void fields(F& f, V& move) {
    f.value("id", move.id);
    f.defaulted("drain", move.drain);
    f.value("source", move.source);
    f.value("target", move.target);
    f.value("rail", move.rail);
    f.value("vm", move.vm);
    f.value("vm_uuid", move.vm_uuid);
    f.value("running", move.running);
    f.value("spec", move.spec);
    f.value("identities", move.identities);
    f.value("stage", move.stage);
    f.nullable("failed_at", move.failed_at);
    f.value("turning_back", move.turning_back);
    f.value("identities_at", move.identities_at);
    f.value("vm_at_target", move.vm_at_target);
    f.value("attempt", move.attempt);
    f.value("unknown", move.unknown);
    f.value("residue", move.residue);
    f.value("marks", move.marks);
    f.value("requested_by", move.requested_by);
    f.value("act", move.act);
}

void check(JsonReader& reader, Move const& move) {
    if (reader.clean("id") && !is_attachment_id(move.id))
        reader.complain("id", "must be 8 hexadecimal digits");
    if (reader.clean("stage", "failed_at") &&
        (move.stage == MoveStage::failed) != move.failed_at.has_value())
        reader.complain("failed_at", "is of a move that failed, and of no other");
}

}  // namespace vfmgr::fleet

namespace vfmgr {
template struct Json<fleet::Move>;
}  // namespace vfmgr
