// SPDX-License-Identifier: Apache-2.0
// What the control thread's tasks read and change: the store, the desired state, the runs. For
// vfmgr/engine only. Control thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "vfmgr/engine/control.hpp"
#include "vfmgr/engine/host_changes.hpp"
#include "vfmgr/engine/recorder.hpp"
#include "vfmgr/store/store.hpp"

namespace vfmgr {

class Control::State {
  public:
    Store store;

    [[nodiscard]] std::map<std::string, PendingRun> const& runs() const { return runs_; }
    void set_run(std::string const& attachment, PendingRun run);
    bool erase_run(std::string const& attachment);  // false: it has none
    void look_again() { changed_ = true; }          // calls all watches

    [[nodiscard]] DesiredState const& desired() const { return desired_; }
    // The operation is about to give VFs these settings: until it ends, a fleet takes none of their
    // identities away.
    void pledge(std::string const& operation, std::vector<VfSpec> settings);
    [[nodiscard]] std::vector<VfSpec> pledged() const;
    // Writes to disk first, then to memory: what is published is never ahead of the disk.
    // Adds the events that follow from the batch's changes. Events without a number get theirs.
    // All are emitted at the end of the turn, when readers can read what they are about.
    [[nodiscard]] Result<void> commit(Batch batch);
    [[nodiscard]] std::map<std::string, Token> const& tokens() const { return *tokens_; }
    // Numbers an event that others refer to; unused numbers leave a gap.
    [[nodiscard]] std::uint64_t next_event() { return ++last_event_; }
    // Numbers a revision of the desired state: none is used twice, even when its owner is gone.
    [[nodiscard]] std::uint64_t next_revision() { return ++last_revision_; }
    // Called with the events of a turn, on the control thread; returns at once.
    std::function<void(std::vector<Event> const&)> emit{};
    std::function<void(Operation const&)> ended{};  // the same, with each operation that has
                                                    // ended
    [[nodiscard]] Result<void> save_token(Token const& token);
    [[nodiscard]] Result<bool> erase_token(std::string const& id);  // false: there was no such
                                                                    // token

  private:
    friend class Control;
    State(Store opened, DesiredState desired, Clock const& clock)
        : store(std::move(opened)), clock_(clock), desired_(std::move(desired)) {}
    // Counts the time of a run that ends, if a tenant has the VM.
    void count_time(PendingRun const& run);
    [[nodiscard]] Result<void> load_tokens();
    // Events of what the host changed since the last call. A store that can't be written gets them
    // at a later call.
    void record_changes(HostView const& host);
    void emit_events();
    // Numbers events, and completes what they are about.
    void prepare(std::vector<Event>& events);
    void take(Batch& batch);  // which is durable
    void report_writable(Result<void> const& written, bool ordinary);
    Clock const& clock_;
    DesiredState desired_;
    std::map<std::string, PendingRun> runs_;              // by attachment
    std::map<std::string, std::vector<VfSpec>> pledged_;  // by operation
    bool changed_ = true;                                 // since it was published
    std::uint64_t last_event_ = 0;
    std::uint64_t last_revision_ = 0;
    std::shared_ptr<std::map<std::string, Token> const> tokens_;
    Recorder recorder_;
    std::optional<HostFacts> host_;  // as far as events have reported it
    LinkFlaps flaps_;
    std::vector<Event> emitted_;  // in this turn
    // The store can't be written, except for its reserve perhaps.
    bool read_only_ = false;
    std::optional<Event> unsaid_{};  // that it is read-only, until that can be stored
};

}  // namespace vfmgr
