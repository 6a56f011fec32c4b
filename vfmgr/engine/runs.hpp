// SPDX-License-Identifier: Apache-2.0
// Verification runs, from their start to the verdict or timeout: those that operations wait for,
// those that guests request themselves, and scheduled ones. The only maker of a PendingRun. Owned
// by the engine; what takes a Control::State runs on the control thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vfmgr/engine/operations.hpp"
#include "vfmgr/engine/schedule.hpp"

namespace vfmgr {

class Runs : public EnginePart {
  public:
    explicit Runs(Operations& operations) : EnginePart(operations) {}

    // Begins a run that the guest with this guest_key() requested. The run is over at its `until`,
    // with or without a report.
    [[nodiscard]] Result<void> begin_run(std::string const& attachment, std::string const& guest,
                                         PendingRun run);
    // Takes the host's verdict on a reported run. The guest gets it at once; it is stored as soon
    // as possible.
    void verification_done(Verification verification);
    // Ends the runs with these names, without a verdict.
    void end_runs(std::vector<std::string> runs);
    // Starts the runs at the same time and waits for their verdicts, which come from the host or
    // from `remote`. The operation's last steps are these waits. The first one that does not pass
    // ends the wait for the others.
    [[nodiscard]] Result<void> prove(Operation& operation, std::vector<Verify> const& requests,
                                     std::optional<RemoteEnd> const& remote = {});
    // Begins the verifications that verify_every_seconds requests, until stop_schedule(). What the
    // hooks refer to must outlive that call.
    void start_schedule(ScheduleHooks hooks);
    void stop_schedule();

  private:
    struct Started {
        Attachment attachment;
        std::string run;
    };
    [[nodiscard]] Result<std::vector<Started>> start_runs(Control::State& state,
                                                          Operation const& operation,
                                                          std::vector<Verify> const& requests,
                                                          std::optional<RemoteEnd> const& remote);
    void start_run(Control::State& state, std::string const& id, PendingRun run);
    // Called before another run begins: one verdict of each attachment may wait for the disk, and
    // none is dropped for another.
    [[nodiscard]] Result<void> write_verdict(Control::State& state, std::string const& id);
    void keep_writing_verdict(Control::State& state, std::string const& id);
    [[nodiscard]] Result<Verification> await_report(std::string const& operation,
                                                    Attachment const& started,
                                                    std::string const& run,
                                                    std::uint32_t timeout_seconds);
    void check_schedule(Control::State& state);
    void begin_scheduled(Control::State& state, Attachment const& attachment);
    void end_scheduled(Control::State& state);
    void await_schedule();
    [[nodiscard]] bool schedule_changed(Control::State const& state) const;

    // By attachment: its state when it was proved, with the settings that the run began with and a
    // verdict that could not be stored so far. Control thread only.
    std::map<std::string, Attachment> unwritten_;
    Schedule schedule_;  // control thread only
};

[[nodiscard]] Error no_such_attachment(std::string const& id);  // it ended meanwhile
[[nodiscard]] Error vfmgrd_stops();
// The error of a run of the attachment that did not pass, or that got no report.
[[nodiscard]] Error failed_verification(Attachment const& attachment,
                                        Verification const& verification);
[[nodiscard]] Error changed_meanwhile(Attachment const& attachment);
[[nodiscard]] Error no_report(Attachment const& attachment, std::uint32_t timeout_seconds);

}  // namespace vfmgr
