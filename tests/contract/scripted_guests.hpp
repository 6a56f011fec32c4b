// SPDX-License-Identifier: Apache-2.0
// Stands for vfmgr-guestd and the VMs behind it: each run that vfmgrd starts ends at once, with the
// verdict that the test wants. For what shows verdicts; how they come about is tested elsewhere.
// Any thread.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "service/guest/dialogue.hpp"

namespace vfmgr::fakes {

class ScriptedGuests final {
  public:
    // Returns what the next run ends with; run, attachment and times are filled in.
    using NextVerdict = std::function<Verification()>;
    explicit ScriptedGuests(NextVerdict next) : next_(std::move(next)) {}
    // Returns vfmgrd's end of a new connection; an earlier one ends.
    [[nodiscard]] Result<FileDescriptor> connect();

  private:
    [[nodiscard]] bool take(guestd::Message const& message);
    void end_runs_of(GuestVm const& vm);
    void tell(Verification const& verdict);

    NextVerdict const next_;
    std::mutex mutex_;             // guards the members below
    std::set<std::string> ended_;  // runs
    std::shared_ptr<guestd::Dialogue> dialogue_;
    RequestThreads ending_{1024};  // waited for before what they use ends
};

}  // namespace vfmgr::fakes
