// SPDX-License-Identifier: Apache-2.0
// Checks that a change is based on the current revision: at admission, and again under the claim,
// because another change may be ahead in the queue. Free functions; any thread.
#pragma once

#include <cstdint>
#include <map>

#include "api/types/problem.hpp"
#include "vfmgr/engine/command.hpp"
#include "vfmgr/plan/desired_state.hpp"

namespace vfmgr {

// What the desired state does not hold is at revision 0.
template <class Key, class Value>
[[nodiscard]] std::uint64_t revision_of(std::map<Key, Value> const& all, Key const& key) {
    auto const now = all.find(key);
    return now == all.end() ? 0 : now->second.revision;
}
// An attachment has no counter: whatever changes in what its readers see is another revision.
// `tenant`: the reader's, empty: of none.
[[nodiscard]] std::uint64_t revision_of(Attachment const& attachment, std::string const& tenant);
// `what` names the object to the user. Without `if_match` every revision passes.
[[nodiscard]] Result<void> check_revision(std::uint64_t revision, std::string const& what,
                                          IfMatch const& if_match);
template <class Value>
[[nodiscard]] Result<void> check_revision(std::map<std::string, Value> const& all,
                                          std::string const& name, IfMatch const& if_match) {
    return check_revision(revision_of(all, name), name, if_match);
}
[[nodiscard]] inline Result<void> check_revision(std::map<PciAddress, DesiredPf> const& all,
                                                 PciAddress const& pf, IfMatch const& if_match) {
    return check_revision(revision_of(all, pf), "the spec of " + to_string(pf), if_match);
}

}  // namespace vfmgr
