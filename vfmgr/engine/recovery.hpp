// SPDX-License-Identifier: Apache-2.0
// Ends what a crash, a stop or an exception cut short. Owned by the engine; runs on an operation's
// thread, unless stated otherwise.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "vfmgr/engine/attachments.hpp"

namespace vfmgr {

class Recovery : public EnginePart {
  public:
    Recovery(Operations& operations, Attachments& attachments)
        : EnginePart(operations), attachments_(attachments) {}

    // Runs before anything is served: observes the host, and takes the claims of the operations
    // that were cut short. They end afterwards, those of each PF separately, and `ended` is called
    // with each, on its thread. Returns true when the host was observed and recovery has nothing to
    // change on it.
    using Recovered = std::function<void(Operation const&)>;
    [[nodiscard]] Result<bool> recover(Recovered const& ended);
    // Refuses a command that would change what is still claimed. On the control thread.
    [[nodiscard]] Result<void> check_recovered(Control::State& state, Command const& command) const;
    void recover_from(Operation& operation, std::string const& exception);

  private:
    void recover_group(std::vector<UnfinishedOperation>& group, ClaimKeys const& claimed,
                       Recovered const& ended);
    // Makes the operation's error; `end` describes what became of its changes.
    using CutShort = std::function<Error(std::string const& end)>;
    void recover_one(UnfinishedOperation& unfinished, CutShort const& cut_short);
    void recover_attachments(UnfinishedOperation& unfinished, CutShort const& cut_short);
    [[nodiscard]] std::vector<std::string> undo_here(Operation& operation,
                                                     std::vector<JournalRecord> records);

    Attachments& attachments_;
    // Keys that recovery claims, and the operation whose end frees them. Control thread only.
    std::map<ClaimKey, std::string> recovering_;
};

}  // namespace vfmgr
