// SPDX-License-Identifier: Apache-2.0
// Any bytes as the payload of RTM_NEWLINK with VFs in it: parsed VLANs are in range, and only a VF
// with settings has counters.
#include <cstdlib>

#include "vfmgr/netlink/vf.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const payload = std::as_bytes(std::span(data, size));
    auto const settings = vfmgr::parse_vf_settings(payload);
    for (auto const& [index, spec] : settings)
        if (spec.vlan && (spec.vlan->id > 0xFFF || spec.vlan->qos > 7)) std::abort();
    for (auto const& traffic : vfmgr::parse_vf_counters(payload))
        if (!settings.contains(traffic.index)) std::abort();
    return 0;
}
