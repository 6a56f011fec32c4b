// SPDX-License-Identifier: Apache-2.0
// The life of an attachment: attach, prove, detach, quarantine. Each method is the body of an
// operation, or a part of one, and runs on its thread. Owned by the engine.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "vfmgr/engine/runs.hpp"

namespace vfmgr {

// Queries another host's responder about itself: blocks for some seconds, on an operation's thread.
using AskResponder = std::function<Result<ResponderInfo>(ResponderTarget const&)>;

class Attachments : public EnginePart {
  public:
    // Submits a verification of the daemon's own; called on an operation's thread.
    using Submit = std::function<void(Verify const& command, std::string const& requested_by)>;
    Attachments(Operations& operations, Runs& runs, AskResponder ask_responder, Submit submit)
        : EnginePart(operations),
          runs_(runs),
          ask_responder_(std::move(ask_responder)),
          submit_(std::move(submit)) {}

    // All of them, or none. `ids`: one for each spec. `tenant` has its quota; empty: the request is
    // of no tenant.
    void attach(Operation& operation, std::vector<std::string> const& ids,
                std::vector<AttachmentSpec> const& specs, std::string const& tenant);
    // Changes its settings while its VM has the VF; `tenant` requested it.
    void change(Operation& operation, ChangeAttachment const& command, IfMatch const& if_match,
                std::string const& tenant);
    // Whatever keeps one of them, the others end.
    void detach(Operation& operation, std::vector<std::string> const& ids);
    void lift(Operation& operation, VfId const& vf);
    void verify(Operation& operation, Verify const& command);
    // The VM is named by its UUID.
    void place_hostdevs(Operation& operation, PlaceInVm const& command);

    // Plans the detach from a fresh view, and does it, under the caller's claims. The attachment
    // ends, or its VF is quarantined.
    [[nodiscard]] Result<void> perform_detach(Operation& operation, Attachment const& attachment);
    // Removes the attachments, and the base of each PF where neither attachment nor quarantine is
    // left.
    [[nodiscard]] Batch without(std::vector<Attachment> const& ended) const;
    [[nodiscard]] Batch quarantined(std::vector<Attachment> const& attachments,
                                    std::string const& reason,
                                    std::vector<std::string> const& residue) const;

  private:
    struct Request {
        std::vector<std::string> const& ids;
        std::vector<AttachmentSpec> const& specs;
        std::string const& tenant;
    };
    template <class Planned>
    struct Begun {
        Held claim;
        Planned planned;
        HostView host;  // that it was planned from
        std::optional<JournalRecord> first{};
    };
    [[nodiscard]] Result<Begun<AttachmentSetPlan>> begin(Operation& operation,
                                                         Request const& request);
    [[nodiscard]] Result<std::set<PciAddress>> pfs_for(Request const& request);
    [[nodiscard]] Result<bool> begin_attachments(Operation& operation, Request const& request,
                                                 std::set<PciAddress> const& claimed,
                                                 Begun<AttachmentSetPlan>& begun);
    [[nodiscard]] bool perform_attach(Operation& operation, Begun<AttachmentSetPlan>& begun);
    void end_failed_attach(Operation& operation, std::vector<Attachment> const& attachments,
                           Failure const& failure);
    void prove_or_detach(Operation& operation, std::vector<Attachment> const& attachments);
    [[nodiscard]] Result<Begun<AttachmentPlan>> begin_change(Operation& operation,
                                                             ChangeAttachment const& command,
                                                             IfMatch const& if_match,
                                                             std::string const& tenant,
                                                             Attachment& before);
    [[nodiscard]] Result<void> change_back(Operation& operation, Attachment const& before,
                                           Attachment const& changed);
    void prove_change(Operation& operation, Verify const& command, Attachment const& before,
                      Attachment const& changed);
    // False: other operations had detached all of them.
    [[nodiscard]] Result<bool> detach_each(Operation& operation,
                                           std::vector<Attachment> const& attached);
    [[nodiscard]] DetachOutcome observe_detached(Attachment const& attachment,
                                                 DetachNotes const& notes, KernelView left) const;
    [[nodiscard]] Result<std::optional<RemoteEnd>> remote_end(Verify const& request) const;

    Runs& runs_;
    AskResponder const ask_responder_;
    Submit const submit_;
};

}  // namespace vfmgr
