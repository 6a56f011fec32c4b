// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/revision.hpp"

#include <fmt/format.h>

namespace vfmgr {
namespace {

Result<void> check(std::uint64_t revision, std::string const& what,
                   std::optional<std::uint64_t> if_match) {
    if (!if_match || *if_match == revision) return {};
    return fail(Problem::precondition_failed,
                fmt::format("the spec of {} is at revision {}, not {}", what, revision, *if_match),
                "read it again and apply your change to the current one");
}

}  // namespace

Result<void> check_revision(DesiredState const& desired, PciAddress const& pf,
                            std::optional<std::uint64_t> if_match) {
    return check(revision_of(desired.pfs, pf), to_string(pf), if_match);
}

Result<void> check_revision(DesiredState const& desired, std::string const& link,
                            std::optional<std::uint64_t> if_match) {
    return check(revision_of(desired.rdma_links, link), link, if_match);
}

}  // namespace vfmgr
