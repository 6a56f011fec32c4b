// SPDX-License-Identifier: Apache-2.0
// Derives events from what a batch changes, so that no part of the engine has to remember to report
// a change. Knows which operations are under way, and what each is about. Control thread only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "vfmgr/store/store.hpp"

namespace vfmgr {

// Says in the event which attachment it is about.
void set_attachment(Event& event, Attachment const& attachment);

class Recorder {
  public:
    Recorder() = default;
    explicit Recorder(std::vector<UnfinishedOperation> const& unfinished,
                      DesiredState const& desired);

    // Returns the batch's own events between those that follow from what it changes: an operation
    // begins before its changes, and ends after them. Nothing is remembered until saved().
    [[nodiscard]] std::vector<Event> events_of(Batch const& batch, DesiredState const& before,
                                               Time now) const;
    void saved(Batch const& batch, DesiredState const& before);

  private:
    // By operation: an event with what it is about, as far as that is known.
    std::map<std::string, Event> under_way_;
};

}  // namespace vfmgr
