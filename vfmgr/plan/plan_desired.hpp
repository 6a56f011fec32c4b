// SPDX-License-Identifier: Apache-2.0
// Plans a whole document of desired state: what changes, in which order, and whether it may. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "api/types/desired.hpp"
#include "vfmgr/plan/plan.hpp"
#include "vfmgr/plan/rdma_links.hpp"

namespace vfmgr {

// The document that changes nothing when it is applied.
[[nodiscard]] DesiredDocument document_of(DesiredState const& desired);
// The same for the same document, for an ETag.
[[nodiscard]] std::uint64_t revision_of(DesiredDocument const& document);

// keep: objects that the document does not name stay as they are. remove: they are removed, the PFs
// from vfmgr's care, with their VFs left as they are.
enum class Unnamed { keep, remove };

struct DesiredPlan {
    Plan plan;
    std::vector<DesiredChange> changes;  // of the document
    DesiredState after;                  // with the revisions before the change
};
// Refuses the whole document if it may not be applied in one part. A PF that is absent is an error
// only if the document changes it.
[[nodiscard]] Result<DesiredPlan> plan_desired(HostView const& host, DesiredState const& desired,
                                               TrustedNetdevs const& trusted,
                                               DesiredDocument const& document, Unnamed unnamed);

}  // namespace vfmgr
