// SPDX-License-Identifier: Apache-2.0
// Any bytes as the attributes of devlink's answers: a port that comes out is of the device.
#include <cstdlib>

#include "vfmgr/netlink/devlink.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr;
    auto const bytes = std::as_bytes(std::span(data, size));
    static_cast<void>(parse_family(bytes));
    static_cast<void>(parse_eswitch_mode(bytes));
    if (parse_vf_port(bytes, {"pci", "0000:01:00.0"}) && parse_vf_port(bytes, {"pci", "other"}))
        std::abort();
    return 0;
}
