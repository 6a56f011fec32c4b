// SPDX-License-Identifier: Apache-2.0
// RDMA links that were requested by name: the bodies of their operations, and their repair. Owned
// by the engine.
#pragma once

#include "vfmgr/engine/repairs.hpp"

namespace vfmgr {

class Links : public EnginePart {
  public:
    // Links are made on `trusted_netdevs` alone.
    Links(Operations& operations, Repairs& repairs, TrustedNetdevs trusted_netdevs)
        : EnginePart(operations), repairs_(repairs), trusted_netdevs_(std::move(trusted_netdevs)) {}

    [[nodiscard]] TrustedNetdevs const& trusted_netdevs() const { return trusted_netdevs_; }
    void add_link(Operation& operation, SoftRdmaLink const& link, IfMatch const& if_match);
    void remove_link(Operation& operation, RdmaLinkRemoval const& what, IfMatch const& if_match);
    // Makes desired links again that are gone and can be made. On the control thread.
    void repair_links(Control::State& state);

  private:
    Repairs& repairs_;
    TrustedNetdevs const trusted_netdevs_;
};

// What a change of a link claims.
[[nodiscard]] ClaimKeys link_keys(HostView const& host, std::string const& name,
                                  std::string const& netdev);

}  // namespace vfmgr
