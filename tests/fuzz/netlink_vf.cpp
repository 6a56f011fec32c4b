// SPDX-License-Identifier: Apache-2.0
// Any bytes as the payload of RTM_NEWLINK with VFs in it: VLANs that come out are in range.
#include <cstdlib>

#include "vfmgr/netlink/vf.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    for (auto const& [index, spec] : vfmgr::parse_vf_settings(std::as_bytes(std::span(data, size))))
        if (spec.vlan && (spec.vlan->id > 0xFFF || spec.vlan->qos > 7)) std::abort();
    return 0;
}
