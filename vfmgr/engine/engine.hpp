// SPDX-License-Identifier: Apache-2.0
// Admission and execution: takes commands, plans, answers; runs each accepted operation on a thread
// of its own, under claims. Owns control thread and operation threads. Any thread may call.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "vfmgr/engine/claims.hpp"
#include "vfmgr/engine/control.hpp"
#include "vfmgr/engine/drift.hpp"
#include "vfmgr/engine/execute.hpp"
#include "vfmgr/engine/places.hpp"
#include "vfmgr/engine/repair.hpp"
#include "vfmgr/engine/schedule.hpp"
#include "vfmgr/plan/rdma_links.hpp"
#include "vfmgr/plan/rekey.hpp"

namespace vfmgr {

inline constexpr std::chrono::milliseconds full_disk_retry{200};

// What a command asks for besides its own matter.
struct Intent {
    bool dry_run = false;
    std::string requested_by;               // uid:0, token:<id>
    std::string idempotency_key;            // empty: none
    std::string request_hash;               // of the body, for the key
    std::optional<std::uint64_t> if_match;  // revision
    std::string request_id{};
};

struct ReplacePfSpec {
    PciAddress pf;
    PfSpec spec;
};
struct ForgetPf {
    PciAddress pf;
};
struct Lend {
    AttachmentSpec spec;
};
struct Release {
    std::string attachment;
};
// An admin says that a VF in quarantine may be released once more.
struct LiftQuarantine {
    VfId vf;
};
struct Verify {
    std::string attachment;
    std::uint32_t timeout_seconds = 120;
    Profile profile = Profile::default_;
    std::optional<ResponderTarget> responder{};  // another host's; absent: this host's own
};
// Of the card that `card` is, as it was read for this: admission never asks the kernel.
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
// A person says that the PF, which is not there, is gone: its attachments end.
struct EndGonePf {
    PciAddress pf;
};
// And that it does not come back: nothing is kept of it any more.
struct ConfirmGonePf {
    PciAddress pf;
};
// What is kept of the PF at `from` is kept of the one at `to`.
struct RekeyPf {
    PciAddress from;
    PciAddress to;
};
using Command =
    std::variant<ReplacePfSpec, ForgetPf, Lend, Release, LiftQuarantine, Verify, ChangeFirmware,
                 AddLink, RemoveLink, EndGonePf, ConfirmGonePf, RekeyPf>;

// dry run: plan (and attachment). Nothing to do: neither. Otherwise: operation.
struct Answer {
    std::optional<Operation> operation;
    std::optional<Plan> plan;
    std::optional<Attachment> attachment;
    std::uint64_t revision = 0;
};
using Reply = std::function<void(Result<Answer>)>;

// How another host's responder is asked about itself: blocks for some seconds, on an operation's
// thread.
using AskResponder = std::function<Result<ResponderInfo>(ResponderTarget const&)>;

// Who else makes or changes VFs of these PFs, by configuration files, which are read once for all.
// Blocks for a moment, on the observer's thread, when there is new drift.
using FindOwners = std::function<OwnersOfPfs(std::vector<PfInfo> const&)>;

class Engine {
  public:
    // Without `ask_responder`, only this host's own responder answers. RDMA links are made on
    // `trusted_netdevs` alone.
    Engine(Kernel& kernel, Hypervisor& hypervisor, std::unique_ptr<Control> control, Clock& clock,
           AskResponder ask_responder = {}, TrustedNetdevs trusted_netdevs = {},
           FindOwners find_owners = {});
    // Ends operations that wait for a guest, and joins the others.
    ~Engine();
    Engine(Engine const&) = delete;
    Engine& operator=(Engine const&) = delete;

    // Before anything is served: observes, and claims what the operations that were cut short are
    // about. They end afterwards, those of each PF by themselves, and `ended` is called with each,
    // on its thread. Until then commands that would change what is claimed are refused.
    using Recovered = std::function<void(Operation const&)>;
    [[nodiscard]] Result<void> recover(Recovered ended = [](Operation const&) {});
    // Nobody waits any more for a guest's report, or to see an operation's end.
    void stop_waiting();
    // After it: operations may go on until `patience`. False: some still do, none of them in the
    // middle of a step of the kernel, and none begins one any more; the process may end now, and
    // leaves them to recovery.
    [[nodiscard]] bool stop(Deadline patience);
    // Starts looking at the host again and again: on look_again() and every few seconds. What
    // recover() has seen is judged first, where nothing has told of a change since. Call it before
    // commands are submitted from other threads.
    void start_observing();
    void look_again();
    // The same, before many others: for what happens to VMs, which is seldom, and matters.
    void look_at_once();

    // Replies once: on the control thread, or at once where too much of `intent.requested_by` waits
    // already. A command that the published view refuses is admitted once more after a look that
    // began after it came: what was just plugged in is not "not found".
    void submit(Command command, Intent intent, Reply reply);

    [[nodiscard]] Snapshot snapshot() const { return control_->snapshot(); }
    [[nodiscard]] Control& control() { return *control_; }
    [[nodiscard]] TrustedNetdevs const& trusted_netdevs() const { return trusted_netdevs_; }
    // Each event as it becomes durable: called on the control thread, returns at once.
    void on_event(std::function<void(HistoryEvent const&)> tell);
    // Each operation that has ended: the same.
    void on_operation(std::function<void(Operation const&)> tell);
    // A run that the guest of `vm_uuid` asked for. It is over at its end, reported or not.
    [[nodiscard]] Result<void> begin_run(std::string const& attachment, std::string const& vm_uuid,
                                         PendingRun run);
    // A report came in: the host's verdict on a run. The guest is told of it at once, and it is
    // stored as soon as that can be.
    void verification_done(Verification verification);
    // Begins the verifications that verify_every_seconds asks for, until it is stopped; what its
    // hooks refer to outlives that.
    void start_schedule(ScheduleHooks hooks);
    void stop_schedule();

  private:
    using Work = std::function<void(Operation&)>;
    [[nodiscard]] Result<void> launch(Operation operation, Work work);
    // What runs on a thread of its own, and throws nothing.
    [[nodiscard]] Result<void> spawn(std::function<void()> work);
    void recover_from(Operation& operation, std::string const& exception);
    void end_by_exception(Operation& operation, std::string const& what);
    void observe_loop();
    void judge_what_is_seen();
    // False: nobody looks (any more), or this client has too much waiting for it.
    [[nodiscard]] bool after_a_look(std::string const& client,
                                    std::function<void(Control::State&)> task);

    // Admission, on the control thread.
    Result<Answer> admit(Control::State& state, Command const& command, Intent const& intent);
    [[nodiscard]] Result<Answer> admit_known(Control::State& state, Command const& command,
                                             Intent const& intent);
    Result<Answer> admit_one(Control::State& state, ReplacePfSpec const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, ForgetPf const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, Lend const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, Release const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, LiftQuarantine const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, Verify const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, ChangeFirmware const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, AddLink const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, RemoveLink const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, EndGonePf const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, ConfirmGonePf const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, RekeyPf const& command, Intent const&);
    Result<Answer> accept(Control::State& state, Operation operation, Intent const& intent,
                          Work work, PlaceWanted const& place = {});

    // The operations' bodies, each on its thread: straight-line code.
    void configure_pf(Operation& operation, ReplacePfSpec const& command,
                      std::optional<std::uint64_t> if_match);
    void forget_pf(Operation& operation, PciAddress const& pf,
                   std::optional<std::uint64_t> if_match);
    void lend(Operation& operation, std::string const& id, AttachmentSpec const& spec);
    void release(Operation& operation, std::string const& id);
    void lift(Operation& operation, VfId const& vf);
    void verify(Operation& operation, Verify const& command);
    void configure_firmware(Operation& operation, ChangeFirmware const& command);
    void add_link(Operation& operation, SoftRdmaLink const& link,
                  std::optional<std::uint64_t> if_match);
    void remove_link(Operation& operation, RdmaLinkRemoval const& what,
                     std::optional<std::uint64_t> if_match);
    void end_gone(Operation& operation, PciAddress const& pf);
    void confirm_gone(Operation& operation, PciAddress const& pf);
    void rekey(Operation& operation, RekeyPf const& command);

    // Parts of them.
    [[nodiscard]] std::uint64_t next_revision();
    Result<Plan> begin_firmware(Operation& operation, ChangeFirmware const& command);
    Result<RekeyPlan> begin_rekey(Operation& operation, RekeyPf const& command,
                                  std::vector<PfMove> const& claimed);
    Result<AttachmentPlan> begin_lease(Operation& operation, std::string const& id,
                                       AttachmentSpec const& spec);
    Result<void> prove(Operation& operation, Verify const& wanted,
                       std::optional<RemoteEnd> const& remote = {});
    Result<std::optional<RemoteEnd>> remote_end(Verify const& wanted) const;
    Result<Verification> await_report(std::string const& id, std::string const& run,
                                      std::uint32_t timeout_seconds);
    Result<void> take_back(Operation& operation, Attachment const& lent);
    Result<void> put_back(Operation& operation, Attachment const& lease);
    [[nodiscard]] HandOver see_handed_over(Attachment const& lease,
                                           ReleaseNotes const& notes) const;
    Result<void> do_plan(Operation& operation, Plan const& plan, OnFailure on_failure);
    void finish(Operation& operation, Result<void> const& outcome, Batch batch);
    // What the host is like already must be written: waits while the disk is full or fails. False
    // when the daemon stops first; the journal then leaves it to recovery.
    bool commit_at_last(Batch const& batch);
    // The same of what is made on the control thread from what is there by then.
    bool commit_at_last(std::function<Batch(DesiredState const&)> const& make);
    [[nodiscard]] Result<void> check_recovered(Command const& command) const;
    void recover_group(std::vector<UnfinishedOperation>& group,
                       std::vector<std::string> const& claimed, Recovered const& ended);
    // What is told of it; `end`: what became of what it had done.
    using CutShort = std::function<Error(std::string const& end)>;
    void recover_one(UnfinishedOperation& unfinished, CutShort const& cut_short);
    void recover_lease(UnfinishedOperation& unfinished, CutShort const& cut_short);
    std::vector<std::string> undo_here(Operation& operation, std::vector<JournalRecord> records);

    // After each look, on the control thread: what PFs are, from the first look that reads it and
    // for as long as anything is kept of them.
    void learn_identities(Control::State& state);
    // Wanted links that went and can be made again.
    void repair_links(Control::State& state);
    // And what is not as it is wanted, though no operation was at it.
    [[nodiscard]] DriftWatch::Seen see_drift();
    void look_for_owners(DriftWatch::Seen& seen);
    void tell_drift(Control::State& state, DriftWatch::Seen const& seen);
    void repair_drift(Control::State& state, DriftWatch::Seen const& seen);
    void repair_drift_of(Control::State& state, HostView const& host, PciAddress const& pf,
                         DriftWatch::Seen const& seen);
    void close_again(Control::State& state, HostView const& host, PciAddress const& pf,
                     DriftWatch::Seen const& seen);
    [[nodiscard]] Repair repair_of_filter(PciAddress const& pf,
                                          std::optional<std::uint64_t> because_of) const;
    [[nodiscard]] Repair repair_of_pf(PciAddress const& pf,
                                      std::optional<std::uint64_t> because_of) const;
    [[nodiscard]] Repair repair_of_lease(Attachment const& lease,
                                         std::optional<std::uint64_t> because_of);
    void tell_refused(Control::State& state, HistoryEvent event, Error const& why);
    bool begin_repair(Control::State& state, HostView const& host, Repair repair);
    void do_repair(Operation& operation, Repair const& repair);
    Result<void> plan_and_do(Operation& operation, Repair const& repair);

    [[nodiscard]] HistoryEvent event_of(EventKind kind, Attachment const& lease,
                                        Operation const* operation, std::string detail) const;

    // Runs and the verdicts on them, on the control thread.
    void start_run(Control::State& state, std::string const& id, PendingRun run);
    // Before another run begins: one verdict of each attachment waits for the disk, and none is
    // dropped for another.
    [[nodiscard]] Result<void> write_verdict(Control::State& state, std::string const& id);
    void keep_writing_verdict(Control::State& state, std::string const& id);

    // Scheduled verifications, on the control thread.
    void look_at_schedule(Control::State& state);
    void begin_scheduled(Control::State& state, Attachment const& lease);
    void end_scheduled(Control::State& state);
    void await_schedule();
    [[nodiscard]] bool schedule_changed(Control::State const& state) const;

    // With the lease gone: its PF's base too, when neither lease nor quarantine is left there.
    [[nodiscard]] Batch without(Attachment const& lease) const;
    [[nodiscard]] Batch quarantined(Attachment const& lease, std::string reason,
                                    std::vector<std::string> residue) const;

    Kernel& kernel_;
    Hypervisor& hypervisor_;
    Clock& clock_;
    RepairPace repairs_;      // control thread only
    DriftWatch drift_watch_;  // control thread only
    // By attachment: as it was proved, with a verdict that could not be stored so far. Control
    // thread only.
    std::map<std::string, Attachment> unwritten_;
    // What is claimed by recovery, and the operation with which that ends. Control thread only.
    std::map<std::string, std::string> recovering_;
    Schedule schedule_;  // its watcher ends with the control thread: it goes after that
    std::unique_ptr<Control> control_;
    AskResponder const ask_responder_;
    TrustedNetdevs const trusted_netdevs_;
    FindOwners const find_owners_;
    OwnersOfPfs owners_;                // observer's thread only
    std::set<std::string> drift_seen_;  // the same
    StepGate gate_;
    Seams seams_;
    Claims claims_;
    Places places_;

    std::atomic<bool> stopping_ = false;
    std::mutex threads_mutex_;
    std::condition_variable threads_changed_;
    std::size_t running_ = 0;  // threads_mutex_
    std::mutex look_mutex_;
    std::condition_variable look_wake_;
    bool observing_ = false;      // look_mutex_
    bool seen_at_start_ = false;  // look_mutex_
    bool look_ = false;           // look_mutex_
    bool at_once_ = false;        // look_mutex_
    struct Awaiting {
        std::string client;
        std::function<void(Control::State&)> task;
    };
    std::vector<Awaiting> awaiting_;  // a look; look_mutex_
    std::thread observer_;
};

// 16 random bytes in hex, or the first `digits` of them.
[[nodiscard]] std::string random_id(std::size_t digits);
// Why a run of the lease did not pass; that none reported.
[[nodiscard]] Error failed_verification(Attachment const& lease, Verification const& verification);
[[nodiscard]] Error no_report(Attachment const& lease, std::uint32_t timeout_seconds);

}  // namespace vfmgr
