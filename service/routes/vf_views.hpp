// SPDX-License-Identifier: Apache-2.0
// VFs as they are observed, with what the daemon knows of each. Holds the snapshot's parts only;
// one thread.
#pragma once

#include <map>
#include <vector>

#include "api/types/vf.hpp"
#include "vfmgr/engine/engine.hpp"
#include "vfmgr/plan/drift.hpp"

namespace vfmgr {

// Covers all VFs at once: a host may have a thousand, and as many attachments.
class VfViews {
  public:
    explicit VfViews(Snapshot const& now);
    [[nodiscard]] std::vector<VfView> of(PfState const& pf) const;
    // The PF's own drift, and that of VFs which it no longer has.
    [[nodiscard]] std::vector<std::string> drift_of(PfState const& pf) const;

  private:
    std::shared_ptr<HostView const> host_;
    std::shared_ptr<DesiredState const> desired_;
    std::map<VfId, Attachment const*> attachments_;
    std::map<PciAddress, std::vector<Drift>> drift_;
};

}  // namespace vfmgr
