// SPDX-License-Identifier: Apache-2.0
// The engine: takes commands, plans, answers; runs what it accepts. Puts its parts together and
// owns them, the control thread too. Any thread may call.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vfmgr/engine/declarations.hpp"
#include "vfmgr/engine/documents.hpp"
#include "vfmgr/engine/endings.hpp"
#include "vfmgr/engine/links.hpp"
#include "vfmgr/engine/observer.hpp"
#include "vfmgr/engine/pfs.hpp"
#include "vfmgr/engine/recovery.hpp"
#include "vfmgr/engine/tenants.hpp"

namespace vfmgr {

class Engine {
  public:
    // Without `ask_responder`, only this host's own responder answers. RDMA links are made on
    // `trusted_netdevs` alone, and nothing is done beyond `bounds` but what restores a state.
    Engine(Kernel& kernel, Hypervisor& hypervisor, std::unique_ptr<Control> control, Clock& clock,
           AskResponder ask_responder = {}, TrustedNetdevs trusted_netdevs = {},
           FindOwners find_owners = {}, HostBounds bounds = {});
    // Ends operations that wait for a guest, and joins the others.
    ~Engine();
    Engine(Engine const&) = delete;
    Engine& operator=(Engine const&) = delete;

    // Ends the operations that were cut short: see Recovery. Until then, commands that would change
    // what they claim are refused.
    using Recovered = Recovery::Recovered;
    [[nodiscard]] Result<void> recover(Recovered const& ended = [](Operation const&) {});
    // Ends all waiting for guests' reports and operations' ends.
    void stop_waiting();
    // Call it after stop_waiting(): operations may go on until `patience`. False: some still run,
    // but none is in the middle of a kernel step, and none begins one any more. The process may end
    // now and leave them to recovery.
    [[nodiscard]] bool stop(Deadline patience) { return operations_.stop(patience); }
    // Starts the observer. It first judges what recover() observed, if no change was reported
    // since. Call it before commands are submitted from other threads.
    void start_observing();
    void observe_again() { observer_.observe_again(); }
    void observe_at_once() { observer_.observe_at_once(); }

    // Replies once: on the control thread, or at once when too many tasks of `intent.requested_by`
    // are waiting already. A command that the published view refuses is tried once more after an
    // observation that began after the command came: a device just plugged in is not "not found".
    void submit(Command command, Intent intent, Reply reply);

    // What is stored. Each is answered on the control thread, in its client's turn, once readers
    // can read what it changed: a token that was erased no longer works.
    //
    // Answered when the operation has ended, or as it is after `wait`. nullopt: there is none.
    [[nodiscard]] Query<std::optional<Operation>> operation(std::string id,
                                                            std::chrono::seconds wait,
                                                            Viewer viewer = {});
    // Cancels a running operation, and answers with it as it is: it ends as soon as it can stop.
    // `only_of`: another's is forbidden.
    [[nodiscard]] Query<Operation> cancel(std::string id, std::optional<std::string> only_of,
                                          Viewer viewer = {});
    // All rows are newest first; see Store for what is kept. Those of a VF that neither exists nor
    // is known to have existed are not_found. A viewer that is a tenant gets what it sees of them:
    // what belongs to others does not exist.
    [[nodiscard]] Query<Rows<Operation>> operations(OperationFilter filter, RowRange range,
                                                    Viewer viewer = {});
    [[nodiscard]] Query<Rows<Verification>> verifications(std::string attachment, RowRange range,
                                                          Viewer viewer = {});
    [[nodiscard]] Query<Rows<Verification>> verifications(VfId vf, std::string attachment,
                                                          RowRange range);
    [[nodiscard]] Query<Rows<Event>> events(VfId vf, std::string attachment, RowRange range);
    // In ascending order: those that follow the number `after`.
    [[nodiscard]] Query<EventPage> events_after(std::uint64_t after, std::size_t max);
    [[nodiscard]] Query<Certificate> certificate(std::string attachment, Viewer viewer = {});
    [[nodiscard]] Query<Rows<AuditEntry>> audit(AuditFilter filter, RowRange range);
    [[nodiscard]] Query<std::vector<Token>> tokens();
    [[nodiscard]] Query<Token> save_token(Token token);
    // Stores what `change` makes of the token with this id; nullopt: there is none.
    [[nodiscard]] Query<std::optional<Token>> change_token(
        std::string id, std::function<Result<Token>(Token)> change);
    // Stores them in a moment. A store that can't be written loses them.
    void save_token_uses(std::map<std::string, TokenUse> uses);
    [[nodiscard]] Query<bool> erase_token(std::string id);  // false: there is none

    // Answered when it is durable: see admit_fence() in fleet.hpp.
    [[nodiscard]] Query<bool> heed_fence(std::uint64_t fence);
    struct StoreFacts {
        std::string id;
        std::uint64_t last_event = 0;
    };
    [[nodiscard]] Query<StoreFacts> store_facts();

    // Stores a new token for the guest's enrolment in place of an earlier one. Fails as
    // attachment_to_enrol() does.
    [[nodiscard]] Query<GuestKeys> save_enrolment(std::string attachment, GuestSecret token);
    // Gives the guest that shows this secret a key. Fails as enrolled() does. Blocks.
    [[nodiscard]] Result<void> enrol(std::string const& attachment, std::string const& shown_sha256,
                                     GuestSecret const& key);

    [[nodiscard]] Snapshot snapshot() const { return control_->snapshot(); }
    [[nodiscard]] Control& control() { return *control_; }
    [[nodiscard]] TrustedNetdevs const& trusted_netdevs() const { return links_.trusted_netdevs(); }
    // `emit` is called on the control thread with the events of each turn, when they are durable
    // and readers can read what they are about; it returns at once. Returns those of the last
    // `recent` numbers before.
    [[nodiscard]] Result<EventPage> on_events(std::function<void(std::vector<Event> const&)> emit,
                                              std::size_t recent);
    // The same, with each operation that has ended.
    void on_operation(std::function<void(Operation const&)> emit);
    // Ends reservations whose time is over; commands find that too.
    void end_expired();
    // Deletes what the store need not keep any longer. A store that can't be written reports that
    // to clients that request a change.
    void prune();
    // Finds out whether a store that refused a write can be written again. Call it now and then.
    void try_store_again();
    [[nodiscard]] Runs& runs() { return runs_; }

  private:
    struct Admission;
    struct Admitting;

    // Admission, on the control thread.
    Result<Answer> admit(Control::State& state, Command const& command, Intent const& intent);
    [[nodiscard]] Result<Answer> admit_known(Control::State& state, Command const& command,
                                             Intent const& intent);

    // Whether the tenant, if the request is one's, may request it.
    [[nodiscard]] Result<void> check_tenant(Control::State& state, HostView const& host,
                                            Command const& command, Intent const& intent) const;

    void judge_observed();
    void submit_own(Verify const& command, std::string const& requested_by);
    // As the VM's tenant, if it has one.
    void submit_for(std::string const& vm_uuid, Command command, std::string const& requested_by,
                    Reply reply);

    std::unique_ptr<Control> control_;  // ends first: its tasks and watches refer to the others
    Operations operations_;
    Runs runs_;
    Attachments attachments_;
    Pfs pfs_;
    Repairs repairs_;
    Endings endings_;
    Declarations declarations_;
    Links links_;
    Documents documents_;
    Recovery recovery_;
    Observer observer_;
};

// The attachment whose guest may enrol. Fails with not_found, and with conflict unless it is
// attached and its guest on TCP.
[[nodiscard]] Result<Attachment const*> attachment_to_enrol(DesiredState const& desired,
                                                            std::string const& id);

}  // namespace vfmgr
