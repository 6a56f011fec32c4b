// SPDX-License-Identifier: Apache-2.0
// VFs as they are observed, with what the daemon knows of each. Holds the snapshot's parts only;
// one thread.
#pragma once

#include <map>
#include <vector>

#include "api/types/pf_state.hpp"
#include "vfmgr/engine/engine.hpp"

namespace vfmgr {

// Covers all VFs at once: a host may have a thousand, and as many attachments.
class VfViews {
  public:
    explicit VfViews(Snapshot const& now);
    [[nodiscard]] std::vector<VfView> of(PfState const& pf) const;
    // Fills in the PF's VFs, and the drift that is of none of them.
    void fill(PfView& view, PfState const& pf) const;

  private:
    [[nodiscard]] std::vector<VfView> without_drift(PfState const& pf) const;

    std::shared_ptr<HostView const> host_;
    std::shared_ptr<DesiredState const> desired_;
    std::map<VfId, Attachment const*> attachments_;
};

}  // namespace vfmgr
