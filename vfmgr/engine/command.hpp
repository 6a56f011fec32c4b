// SPDX-License-Identifier: Apache-2.0
// What clients of the engine request, and its answers. Values; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/attachment_patch.hpp"
#include "api/types/firmware.hpp"
#include "api/types/guest.hpp"
#include "api/types/operation.hpp"
#include "api/types/pf.hpp"
#include "vfmgr/plan/if_match.hpp"
#include "vfmgr/plan/plan.hpp"
#include "vfmgr/plan/plan_desired.hpp"
#include "vfmgr/plan/rdma_links.hpp"

namespace vfmgr {

// What a client sends along with any command.
struct Intent {
    bool dry_run = false;
    std::string requested_by;     // uid:0, token:<id>, cert:<name>
    std::string idempotency_key;  // empty: none
    std::string request_hash;     // of the body, for the key
    IfMatch if_match;
    std::string request_id{};
    std::string tenant{};  // whose request it is; empty: of no tenant
    // Of the fleet's scheduler that requests it; absent: none does.
    std::optional<std::uint64_t> fence{};
};

struct ReplacePfSpec {
    PciAddress pf;
    PfSpec spec;
};
struct ForgetPf {
    PciAddress pf;
};
struct PutNetwork {
    Network network;
};
struct RemoveNetwork {
    std::string name;
};
struct PutPool {
    Pool pool;
};
struct RemovePool {
    std::string name;
};
struct PutTenant {
    Tenant tenant;
};
struct RemoveTenant {
    std::string name;
};
struct PutIdentities {
    Identities identities;
};
struct JoinFleet {
    FleetMembership membership;
};
struct LeaveFleet {};
// A restored store may take attachments again.
struct ConfirmRestored {};
struct Reserve {
    std::string name;
    ReservationSpec spec;
};
struct Release {  // a reservation, with the VFs that it still keeps
    std::string name;
};
// One operation: all of them, or none.
struct Attach {
    std::vector<AttachmentSpec> specs;  // at least one

    explicit Attach(AttachmentSpec spec) : specs{std::move(spec)} {}
    explicit Attach(std::vector<AttachmentSpec> several) : specs(std::move(several)) {}
};
struct ChangeAttachment {
    std::string attachment;
    AttachmentPatch patch;
};
// One operation: those that can be are detached, whatever keeps the others.
struct Detach {
    std::vector<std::string> attachments;  // ids, at least one, each once

    explicit Detach(std::string id) : attachments{std::move(id)} {}
    explicit Detach(std::vector<std::string> ids) : attachments(std::move(ids)) {}
};
// An admin requests that a VF in quarantine be detached once more.
struct LiftQuarantine {
    VfId vf;
};
struct Verify {
    std::string attachment;
    std::uint32_t timeout_seconds = 120;
    Profile profile = Profile::default_;
    std::optional<ResponderTarget> responder{};  // another host's; absent: this host's own
};
// Changes the settings of `card`, as it was read for this command: admission never queries the
// kernel.
struct ChangeFirmware {
    FirmwareSettings settings;
    FirmwareCard card;
};
struct AddLink {
    SoftRdmaLink link;
};
struct RemoveLink {
    RdmaLinkRemoval what;
};
// Gives a VM's host devices places that are near each other as on the host; `back`: those before.
struct PlaceInVm {
    std::string vm;  // name or UUID
    bool back = false;
};
// An admin declares that the absent PF is gone: its attachments end.
struct EndGonePf {
    PciAddress pf;
};
// An admin confirms that the PF does not come back: all that is stored for it is removed.
struct ConfirmGonePf {
    PciAddress pf;
};
// Moves what is stored of the PF at `from` to the one at `to`.
struct RekeyPf {
    PciAddress from;
    PciAddress to;
};
// Everything at once, from a document.
struct ReplaceDesired {
    DesiredDocument document;
    Unnamed unnamed = Unnamed::keep;
};
using Command =
    std::variant<ReplacePfSpec, ForgetPf, PutNetwork, RemoveNetwork, PutPool, RemovePool, PutTenant,
                 RemoveTenant, PutIdentities, JoinFleet, LeaveFleet, ConfirmRestored, Reserve,
                 Release, Attach, ChangeAttachment, Detach, LiftQuarantine, Verify, ChangeFirmware,
                 AddLink, RemoveLink, PlaceInVm, EndGonePf, ConfirmGonePf, RekeyPf, ReplaceDesired>;

// Dry run: plan (and attachment). Nothing to do: neither. Otherwise: operation, with the plan that
// it was admitted with, unless a request with the same Idempotency-Key began it.
struct Answer {
    std::optional<Operation> operation;
    std::optional<Plan> plan;
    std::optional<Attachment> attachment;
    std::uint64_t revision = 0;
    std::vector<DesiredChange> changes{};   // of a document
    std::vector<Attachment> attachments{};  // of a dry run for several; `attachment` is absent
};
using Reply = std::function<void(Result<Answer>)>;

}  // namespace vfmgr
