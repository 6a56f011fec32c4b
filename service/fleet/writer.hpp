// SPDX-License-Identifier: Apache-2.0
// Every write to etcd: decided from the state that this replica knows, guarded by it, and decided
// again when another replica was faster. Blocks; any thread but the io threads.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "service/fleet/etcd/settle.hpp"
#include "service/fleet/registry.hpp"

namespace vfmgr::fleet {

// From what is known now to what is to be written. Absent: there is nothing to write. It may be
// called several times, each time with a later state.
using Decide = std::function<Result<std::optional<GuardedTransaction>>(State const&)>;

class Writer {
  public:
    // What is referred to outlives it.
    Writer(Etcd& etcd, Registry& registry, Timing timing)
        : etcd_(etcd), registry_(registry), timing_(std::move(timing)) {}

    // Returns a state in which it is done. Errors: those of `decide`; timed_out: whether it was
    // done is not known, and it may still be; unavailable: it was not.
    [[nodiscard]] Result<std::shared_ptr<State const>> write(Decide const& decide,
                                                             Deadline deadline) const;
    // The same for what only the elected scheduler may write: fails with unavailable if another
    // replica was elected since `fence`, in the transaction itself.
    [[nodiscard]] Result<std::shared_ptr<State const>> write_as_scheduler(Revision fence,
                                                                          Decide const& decide,
                                                                          Deadline deadline) const;

  private:
    Etcd& etcd_;
    Registry& registry_;
    Timing timing_;
};

}  // namespace vfmgr::fleet
