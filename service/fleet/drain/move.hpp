// SPDX-License-Identifier: Apache-2.0
// An attachment that moves with its VM to another host: the document moves/<id> in etcd, and how it
// goes on. Pure: the leader writes each document before it asks for what the document says, so
// whoever leads after a crash asks for the same again. Everything that is asked can be asked twice.
//
//   planned > holding > detaching > keeping > giving_up > claiming > migrating > attaching
//           > proving > dropping > done
//   the way back: unattaching > calling_back > reclaiming > reattaching > reproving > releasing
//           > returned, from the stage that undoes the last one that was, or may have been, done
//
// Queue pairs do not survive any of this: RDMA keeps its connections in the VF. What moves is the
// VM's identity: the same MAC, GUID and address on the same rail.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/identities.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/problem.hpp"
#include "service/fleet/drain/host_call.hpp"

namespace vfmgr::fleet {

enum class MoveStage {
    planned,    // nothing was asked of anybody
    holding,    // the target is to keep a VF on the same rail
    detaching,  // the source is to detach: from the running VM and from its XML
    keeping,    // the source is to keep a VF for the way back; it goes on without
    giving_up,  // the source is to give up the identities, durably
    claiming,   // the identities are to be the target's
    migrating,  // somebody is to run the VM on the target: an orchestrator, or libvirt
    attaching,  // the target is to attach, with the same identities
    proving,    // RDMA over it is to be proved; not for a VM that does not run
    dropping,   // the source's kept VF is to be free again
    done,
    unattaching,   // the target is to detach
    calling_back,  // the VM is to run on the source again
    reclaiming,    // the identities are to be the source's again
    reattaching,   // the source is to attach again
    reproving,
    releasing,  // the target's kept VF is to be free again
    returned,   // the VF is back at the source, or never left it
    failed,     // an admin decides: resume it, or turn it back; `residue` says what is where
};

enum class IdentitiesAt { source, under_way, target };

struct MoveEnd {
    std::string host;
    PciAddress pf;           // of the rail
    std::string attachment;  // 8 hex digits; empty: none stands there
    bool vf_kept = false;    // by the reservation reservation_of(); true also if it is not known
    bool operator==(MoveEnd const&) const = default;
};

struct MoveMark {
    MoveStage stage = MoveStage::planned;  // that was entered
    Time at{};
    std::string because;  // a refusal's detail; empty: the stage before was done
    bool operator==(MoveMark const&) const = default;
};

struct Move {
    std::string id;     // 8 hex digits
    std::string drain;  // that it is part of; empty: none
    MoveEnd source;
    MoveEnd target;
    std::string rail;
    std::string vm;  // its name
    std::string vm_uuid;
    bool running = false;  // then RDMA is proved, at the target and on the way back
    AttachmentSpec spec;   // as both hosts get it; with the identities, without PF and reservation
    IdentityList identities;
    MoveStage stage = MoveStage::planned;
    std::optional<MoveStage> failed_at{};  // with `failed`
    bool turning_back = false;             // as soon as it is known what the stage did
    IdentitiesAt identities_at = IdentitiesAt::source;
    bool vm_at_target = false;
    std::uint32_t attempt = 1;         // of the stage, when an admin resumed it
    std::uint32_t unknown = 0;         // answers that did not say what was done, in this stage
    std::vector<std::string> residue;  // what is where it should not be, for an admin
    std::vector<MoveMark> marks;       // of each stage
    std::string requested_by;
    std::string act;  // of the transaction that wrote this
    bool operator==(Move const&) const = default;
};
[[nodiscard]] bool has_ended(Move const& move);  // done, returned or failed

// What to do now.

// Moves all of the move's identities by moves.hpp; refused as soon as one is.
enum class IdentityStep {
    give_up,  // until all are given_up
    claim,    // until all are the target's, and the target acknowledged them
    restore,  // abort, or move back: until all are the source's, and the source acknowledged them
};
struct IdentityAsk {
    IdentityStep step = IdentityStep::give_up;
    bool operator==(IdentityAsk const&) const = default;
};
// Waits until the VM is on that host, or somebody says that it will not be.
struct VmAsk {
    std::string host;
    bool operator==(VmAsk const&) const = default;
};
using MoveAsk = std::variant<HostCall, IdentityAsk, VmAsk>;
// nullopt: nothing, it is planned or has ended.
[[nodiscard]] std::optional<MoveAsk> ask_of(Move const& move);

struct MoveAnswer {
    Outcome outcome = Outcome::unknown;
    std::optional<Error> error{};  // of a refusal
    std::string attachment{};      // that a POST of attachments made
    // After a refused detach: whether the attachment stands as before. Absent: not known.
    std::optional<bool> still_attached{};
};

struct MoveOrder {
    std::string id;
    std::string drain;
    std::string source;
    std::string target;
    PciAddress target_pf;
    std::string rail;
    bool running = false;
    std::string requested_by;
};
// unsupported: an external holder moves its device itself. conflict: it is not attached, or on that
// host already.
[[nodiscard]] Result<Move> planned_move(Attachment const& attachment, MoveOrder const& order);
[[nodiscard]] Move begun(Move move, Stamp const& stamp);
[[nodiscard]] Move after(Move move, MoveAnswer const& answer, Stamp const& stamp);
// conflict: it is done, or on its way back.
[[nodiscard]] Result<Move> turned_back(Move move, std::string const& because, Stamp const& stamp);
// Tries the stage again that failed. conflict: none did.
[[nodiscard]] Result<Move> resumed(Move move, Stamp const& stamp);

[[nodiscard]] std::string reservation_of(Move const& move);  // "move-0123abcd", on both hosts
// What will happen, in sentences, the interruption first.
[[nodiscard]] std::vector<std::string> sentences_of(Move const& move);
// What is where it should not be, if the move ends here.
[[nodiscard]] std::vector<std::string> residue_of(Move const& move);

}  // namespace vfmgr::fleet

namespace vfmgr {
extern template struct Json<fleet::Move>;
}  // namespace vfmgr
