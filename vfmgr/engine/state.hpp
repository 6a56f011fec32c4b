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
#include "vfmgr/store/store.hpp"

namespace vfmgr {

class Control::State {
  public:
    Store store;

    [[nodiscard]] std::map<std::string, PendingRun> const& runs() const { return runs_; }
    void set_run(std::string const& attachment, PendingRun run);
    bool erase_run(std::string const& attachment);  // false: it has none

    [[nodiscard]] DesiredState const& desired() const { return desired_; }
    // Writes to disk first, then to memory: what is published is never ahead of the disk.
    // Events without a number get theirs, and are emitted once they are durable.
    [[nodiscard]] Result<void> commit(Batch batch);
    // Numbers an event that others refer to; unused numbers leave a gap.
    [[nodiscard]] std::uint64_t next_event() { return ++last_event_; }
    // Numbers a revision of the desired state: none is used twice, even when its owner is gone.
    [[nodiscard]] std::uint64_t next_revision() { return ++last_revision_; }
    // Called with each event, on the control thread; returns at once.
    std::function<void(HistoryEvent const&)> emit{};
    std::function<void(Operation const&)> ended{};  // the same, with each operation that has
                                                    // ended
    [[nodiscard]] Result<void> save_token(Token const& token);
    [[nodiscard]] Result<bool> erase_token(std::string const& id);  // false: there was no such
                                                                    // token

  private:
    friend class Control;
    State(Store opened, DesiredState desired)
        : store(std::move(opened)), desired_(std::move(desired)) {}
    [[nodiscard]] Result<void> load_tokens();
    DesiredState desired_;
    std::map<std::string, PendingRun> runs_;  // by attachment
    bool changed_ = true;                     // since it was published
    std::uint64_t last_event_ = 0;
    std::uint64_t last_revision_ = 0;
    std::shared_ptr<std::map<std::string, Token> const> tokens_;
};

}  // namespace vfmgr
