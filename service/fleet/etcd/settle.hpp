// SPDX-License-Identifier: Apache-2.0
// A transaction whose answer was lost is sent again, never assumed to have failed or to have been
// carried out. No ownership; any thread, which waits.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "service/fleet/etcd/etcd.hpp"
#include "service/fleet/etcd/timing.hpp"

namespace vfmgr::fleet {

// Carried out at most once, however often it is sent: it writes its main key, with an act in the
// value, under a comparison of that key which this write ends: absent() or unchanged(). To be sure
// of that, nobody may erase a main key whose creation may be pending.
struct GuardedTransaction {
    Transaction transaction;
    std::string key;  // the main key
    std::string act;  // random, and in no other transaction
    // It has been sent before and stayed pending. It was possibly carried out then, and the key
    // written again by somebody else.
    bool sent_before = false;
};

struct Done {
    Revision revision = 0;
    bool operator==(Done const&) const = default;
};
// Not carried out: a comparison failed. `found` are the keys of `otherwise` and the main key, as
// they are. An earlier attempt whose answer was lost may still be in a member that is paused. It is
// carried out after all if all comparisons hold again when that member goes on, which those of a
// revision never do.
struct Refused {
    std::vector<KeyValue> found;
    bool operator==(Refused const&) const = default;
};
using Settled = std::variant<Done, Refused>;

// Sends it until there is an answer or the deadline passes. Errors are those of Etcd::commit(), but
// limit_exceeded is sure: it was not carried out. With timed_out it stays pending: settle the same
// transaction again later, with sent_before.
[[nodiscard]] Result<Settled> settle(Etcd& etcd, GuardedTransaction const& guarded,
                                     Timing const& timing, Deadline deadline);

}  // namespace vfmgr::fleet
