// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/remote_path.hpp"

namespace vfmgr {

std::optional<TestPath> path_to(std::optional<MacAddress> const& responder, HostView const& host) {
    if (!responder || *responder == MacAddress{}) return std::nullopt;
    bool all_known = true;
    for (auto const& [pci, pf] : host.kernel.pfs) {
        if (pf.info.mac == responder) return TestPath::internal_switch;
        for (auto const& vf : pf.vfs) {
            if (vf.settings.mac == responder) return TestPath::internal_switch;
            all_known = all_known && vf.settings.mac.has_value();
        }
    }
    if (all_known) return TestPath::wire;
    return std::nullopt;
}

}  // namespace vfmgr
