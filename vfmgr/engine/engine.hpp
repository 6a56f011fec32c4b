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

// What a client sends along with any command.
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
struct Attach {
    AttachmentSpec spec;
};
struct Detach {
    std::string attachment;
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
// An admin declares that the absent PF is gone: its attachments end.
struct EndGonePf {
    PciAddress pf;
};
// An admin confirms that it does not come back: all that is stored of it is removed.
struct ConfirmGonePf {
    PciAddress pf;
};
// Moves what is stored of the PF at `from` to the one at `to`.
struct RekeyPf {
    PciAddress from;
    PciAddress to;
};
using Command =
    std::variant<ReplacePfSpec, ForgetPf, Attach, Detach, LiftQuarantine, Verify, ChangeFirmware,
                 AddLink, RemoveLink, EndGonePf, ConfirmGonePf, RekeyPf>;

// Dry run: plan (and attachment). Nothing to do: neither. Otherwise: operation.
struct Answer {
    std::optional<Operation> operation;
    std::optional<Plan> plan;
    std::optional<Attachment> attachment;
    std::uint64_t revision = 0;
};
using Reply = std::function<void(Result<Answer>)>;

// Queries another host's responder about itself: blocks for some seconds, on an operation's thread.
using AskResponder = std::function<Result<ResponderInfo>(ResponderTarget const&)>;

// Finds in configuration files what else makes or changes VFs of these PFs. Reads the files once
// for all PFs. Blocks for a moment, on the observer's thread, when there is new drift.
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

    // Runs before anything is served: observes, and takes the claims of the operations that were
    // cut short. They end afterwards, those of each PF separately, and `ended` is called with each,
    // on its thread. Until then, commands that would change what is claimed are refused.
    using Recovered = std::function<void(Operation const&)>;
    [[nodiscard]] Result<void> recover(Recovered ended = [](Operation const&) {});
    // Ends all waiting for guests' reports and operations' ends.
    void stop_waiting();
    // Call it after stop_waiting(): operations may go on until `patience`. False: some still run,
    // but none is in the middle of a kernel step, and none begins one any more. The process may end
    // now and leave them to recovery.
    [[nodiscard]] bool stop(Deadline patience);
    // Starts the observer, which runs on observe_again() and every few seconds. It first judges
    // what recover() observed, if no change was reported since. Call it before commands are
    // submitted from other threads.
    void start_observing();
    void observe_again();
    // The same, but waits only as long as the last observation took (at most 15 s), not nine times
    // as long (at most 30 s): for changes of VMs, which are rare and matter.
    void observe_at_once();

    // Replies once: on the control thread, or at once when too many tasks of `intent.requested_by`
    // are waiting already. A command that the published view refuses is admitted once more after an
    // observation that began after it came: a device just plugged in is not "not found".
    void submit(Command command, Intent intent, Reply reply);

    [[nodiscard]] Snapshot snapshot() const { return control_->snapshot(); }
    [[nodiscard]] Control& control() { return *control_; }
    [[nodiscard]] TrustedNetdevs const& trusted_netdevs() const { return trusted_netdevs_; }
    // `emit` is called with each event as it becomes durable, on the control thread; it returns at
    // once.
    void on_event(std::function<void(HistoryEvent const&)> emit);
    // The same, with each operation that has ended.
    void on_operation(std::function<void(Operation const&)> emit);
    // Begins a run that the guest of `vm_uuid` requested. The run is over at its end, reported or
    // not.
    [[nodiscard]] Result<void> begin_run(std::string const& attachment, std::string const& vm_uuid,
                                         PendingRun run);
    // Takes the host's verdict on a reported run. The guest gets it at once; it is stored as soon
    // as possible.
    void verification_done(Verification verification);
    // Begins the verifications that verify_every_seconds requests, until it is stopped. What its
    // hooks refer to must outlive that.
    void start_schedule(ScheduleHooks hooks);
    void stop_schedule();

  private:
    using Work = std::function<void(Operation&)>;
    [[nodiscard]] Result<void> launch(Operation operation, Work work);
    // Runs `work`, which throws nothing, on a thread of its own.
    [[nodiscard]] Result<void> spawn(std::function<void()> work);
    void recover_from(Operation& operation, std::string const& exception);
    void end_by_exception(Operation& operation, std::string const& what);
    void observe_loop();
    void judge_observed();
    // False: no observer runs (any more), or too many of this client's tasks are waiting.
    [[nodiscard]] bool after_observing(std::string const& client,
                                       std::function<void(Control::State&)> task);

    // Admission, on the control thread.
    Result<Answer> admit(Control::State& state, Command const& command, Intent const& intent);
    [[nodiscard]] Result<Answer> admit_known(Control::State& state, Command const& command,
                                             Intent const& intent);
    Result<Answer> admit_one(Control::State& state, ReplacePfSpec const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, ForgetPf const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, Attach const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, Detach const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, LiftQuarantine const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, Verify const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, ChangeFirmware const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, AddLink const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, RemoveLink const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, EndGonePf const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, ConfirmGonePf const& command, Intent const&);
    Result<Answer> admit_one(Control::State& state, RekeyPf const& command, Intent const&);
    Result<Answer> accept(Control::State& state, Operation operation, Intent const& intent,
                          Work work, PlaceRequest const& place = {});

    // The operations' bodies, each on its thread: straight-line code.
    void configure_pf(Operation& operation, ReplacePfSpec const& command,
                      std::optional<std::uint64_t> if_match);
    void forget_pf(Operation& operation, PciAddress const& pf,
                   std::optional<std::uint64_t> if_match);
    void attach(Operation& operation, std::string const& id, AttachmentSpec const& spec);
    void detach(Operation& operation, std::string const& id);
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
    Result<AttachmentPlan> begin_attachment(Operation& operation, std::string const& id,
                                            AttachmentSpec const& spec);
    Result<void> prove(Operation& operation, Verify const& request,
                       std::optional<RemoteEnd> const& remote = {});
    Result<std::optional<RemoteEnd>> remote_end(Verify const& request) const;
    Result<Verification> await_report(std::string const& id, std::string const& run,
                                      std::uint32_t timeout_seconds);
    Result<void> detach_held(Operation& operation, Attachment const& attached);
    Result<void> perform_detach(Operation& operation, Attachment const& attachment);
    [[nodiscard]] DetachOutcome observe_detached(Attachment const& attachment,
                                                 DetachNotes const& notes) const;
    Result<void> do_plan(Operation& operation, Plan const& plan, OnFailure on_failure);
    void finish(Operation& operation, Result<void> const& outcome, Batch batch);
    // Writes a change that the host already has: waits while the disk is full or fails. False when
    // the daemon stops first; the journal then leaves it to recovery.
    bool commit_at_last(Batch const& batch);
    // The same, for a batch made on the control thread from the state at that time.
    bool commit_at_last(std::function<Batch(DesiredState const&)> const& make);
    [[nodiscard]] Result<void> check_recovered(Command const& command) const;
    void recover_group(std::vector<UnfinishedOperation>& group,
                       std::vector<std::string> const& claimed, Recovered const& ended);
    // Makes the operation's error; `end` describes what became of its changes.
    using CutShort = std::function<Error(std::string const& end)>;
    void recover_one(UnfinishedOperation& unfinished, CutShort const& cut_short);
    void recover_attachment(UnfinishedOperation& unfinished, CutShort const& cut_short);
    std::vector<std::string> undo_here(Operation& operation, std::vector<JournalRecord> records);

    // After each observation, on the control thread: stores PFs' identities, from the first
    // observation that reads them and for as long as anything is stored of the PFs.
    void learn_identities(Control::State& state);
    // Makes desired links again that went and can be made.
    void repair_links(Control::State& state);
    // Finds drift that no running operation explains.
    [[nodiscard]] DriftWatch::Observed observe_drift();
    void name_owners(DriftWatch::Observed& observed);
    void report_drift(Control::State& state, DriftWatch::Observed const& observed);
    void repair_drift(Control::State& state, DriftWatch::Observed const& observed);
    void repair_drift_of(Control::State& state, HostView const& host, PciAddress const& pf,
                         DriftWatch::Observed const& observed);
    void close_again(Control::State& state, HostView const& host, PciAddress const& pf,
                     DriftWatch::Observed const& observed);
    [[nodiscard]] Repair repair_of_filter(PciAddress const& pf,
                                          std::optional<std::uint64_t> because_of) const;
    [[nodiscard]] Repair repair_of_pf(PciAddress const& pf,
                                      std::optional<std::uint64_t> because_of) const;
    [[nodiscard]] Repair repair_of_attachment(Attachment const& attachment,
                                              std::optional<std::uint64_t> because_of);
    void report_refused(Control::State& state, HistoryEvent event, Error const& why);
    bool begin_repair(Control::State& state, HostView const& host, Repair repair);
    void do_repair(Operation& operation, Repair const& repair);
    Result<void> plan_and_do(Operation& operation, Repair const& repair);

    [[nodiscard]] HistoryEvent event_of(EventKind kind, Attachment const& attachment,
                                        Operation const* operation, std::string detail) const;

    // Runs and their verdicts, on the control thread.
    void start_run(Control::State& state, std::string const& id, PendingRun run);
    // Called before another run begins: one verdict of each attachment may wait for the disk, and
    // none is dropped for another.
    [[nodiscard]] Result<void> write_verdict(Control::State& state, std::string const& id);
    void keep_writing_verdict(Control::State& state, std::string const& id);

    // Scheduled verifications, on the control thread.
    void check_schedule(Control::State& state);
    void begin_scheduled(Control::State& state, Attachment const& attachment);
    void end_scheduled(Control::State& state);
    void await_schedule();
    [[nodiscard]] bool schedule_changed(Control::State const& state) const;

    // Removes the attachment, and its PF's base when neither attachment nor quarantine is left
    // there.
    [[nodiscard]] Batch without(Attachment const& attachment) const;
    [[nodiscard]] Batch quarantined(Attachment const& attachment, std::string reason,
                                    std::vector<std::string> residue) const;

    Kernel& kernel_;
    Hypervisor& hypervisor_;
    Clock& clock_;
    RepairPace repairs_;      // control thread only
    DriftWatch drift_watch_;  // control thread only
    // By attachment: its state when it was proved, with a verdict that could not be stored so far.
    // Control thread only.
    std::map<std::string, Attachment> unwritten_;
    // Keys that recovery claims, and the operation whose end frees them. Control thread only.
    std::map<std::string, std::string> recovering_;
    Schedule schedule_;  // its watcher ends with the control thread: destroyed after that
    std::unique_ptr<Control> control_;
    AskResponder const ask_responder_;
    TrustedNetdevs const trusted_netdevs_;
    FindOwners const find_owners_;
    OwnersOfPfs owners_;                    // observer's thread only
    std::set<std::string> drift_observed_;  // the same
    StepGate gate_;
    Seams seams_;
    Claims claims_;
    Places places_;

    std::atomic<bool> stopping_ = false;
    std::mutex threads_mutex_;
    std::condition_variable threads_changed_;
    std::size_t running_ = 0;  // threads_mutex_
    std::mutex observer_mutex_;
    std::condition_variable observer_wake_;
    bool observing_ = false;          // observer_mutex_
    bool observed_at_start_ = false;  // observer_mutex_
    bool observe_now_ = false;        // observer_mutex_
    bool at_once_ = false;            // observer_mutex_
    struct Awaiting {
        std::string client;
        std::function<void(Control::State&)> task;
    };
    std::vector<Awaiting> awaiting_;  // waiting for an observation; observer_mutex_
    std::thread observer_;
};

// The error of a run of the attachment that did not pass, or that got no report.
[[nodiscard]] Error failed_verification(Attachment const& attachment,
                                        Verification const& verification);
[[nodiscard]] Error no_report(Attachment const& attachment, std::uint32_t timeout_seconds);

}  // namespace vfmgr
