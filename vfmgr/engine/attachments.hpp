// SPDX-License-Identifier: Apache-2.0
// The life of an attachment: attach, prove, detach, quarantine. Each method is the body of an
// operation, or a part of one, and runs on its thread. Owned by the engine.
#pragma once

#include <functional>
#include <optional>
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

    // `tenant` has its quota; empty: the request is of no tenant.
    void attach(Operation& operation, std::string const& id, AttachmentSpec const& spec,
                std::string const& tenant);
    // Changes its settings while its VM has the VF; `tenant` requested it.
    void change(Operation& operation, ChangeAttachment const& command, IfMatch const& if_match,
                std::string const& tenant);
    void detach(Operation& operation, std::string const& id);
    void lift(Operation& operation, VfId const& vf);
    void verify(Operation& operation, Verify const& command);

    // Plans the detach from a fresh view, and does it, under the caller's claims. The attachment
    // ends, or its VF is quarantined.
    [[nodiscard]] Result<void> perform_detach(Operation& operation, Attachment const& attachment);
    // Removes the attachment, and its PF's base when neither attachment nor quarantine is left
    // there.
    [[nodiscard]] Batch without(Attachment const& attachment) const;
    [[nodiscard]] Batch quarantined(Attachment const& attachment, std::string reason,
                                    std::vector<std::string> residue) const;

  private:
    struct Begun {
        Held claim;
        AttachmentPlan planned;
        HostView host;  // that it was planned from
        std::optional<JournalRecord> first{};
    };
    [[nodiscard]] Result<Begun> begin(Operation& operation, std::string const& id,
                                      AttachmentSpec const& spec, std::string const& tenant);
    [[nodiscard]] Result<PciAddress> pf_for(std::string const& id, AttachmentSpec const& spec);
    [[nodiscard]] Result<bool> begin_attachment(Operation& operation, std::string const& id,
                                                AttachmentSpec const& spec,
                                                std::string const& tenant,
                                                PciAddress const& claimed, Begun& begun);
    [[nodiscard]] Result<Begun> begin_change(Operation& operation, ChangeAttachment const& command,
                                             IfMatch const& if_match, std::string const& tenant,
                                             Attachment& before);
    [[nodiscard]] Result<void> change_back(Operation& operation, Attachment const& before,
                                           Attachment const& changed);
    void prove_change(Operation& operation, Verify const& command, Attachment const& before,
                      Attachment const& changed);
    [[nodiscard]] Result<void> detach_held(Operation& operation, Attachment const& attached);
    [[nodiscard]] DetachOutcome observe_detached(Attachment const& attachment,
                                                 DetachNotes const& notes, KernelView left) const;
    [[nodiscard]] Result<std::optional<RemoteEnd>> remote_end(Verify const& request) const;

    Runs& runs_;
    AskResponder const ask_responder_;
    Submit const submit_;
};

}  // namespace vfmgr
