// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/revision.hpp"

#include <fmt/format.h>

namespace vfmgr {
namespace {

template <class Key, class Value>
Result<void> check(std::map<Key, Value> const& all, Key const& key, std::string const& what,
                   std::optional<std::uint64_t> if_match) {
    auto const now = all.find(key);
    auto const revision = now == all.end() ? 0 : now->second.revision;
    if (!if_match || *if_match == revision) return {};
    return fail(Problem::precondition_failed,
                fmt::format("the spec of {} is at revision {}, not {}", what, revision, *if_match),
                "read it again and apply your change to the current one");
}

}  // namespace

Result<void> check_revision(DesiredState const& desired, PciAddress const& pf,
                            std::optional<std::uint64_t> if_match) {
    return check(desired.pfs, pf, to_string(pf), if_match);
}

Result<void> check_revision(DesiredState const& desired, std::string const& link,
                            std::optional<std::uint64_t> if_match) {
    return check(desired.rdma_links, link, link, if_match);
}

}  // namespace vfmgr
