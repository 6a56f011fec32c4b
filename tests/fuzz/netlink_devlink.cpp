// SPDX-License-Identifier: Apache-2.0
// Any bytes as the attributes of devlink's answers: a parsed port or parameter is the device's, and
// a parameter has a name.
#include <cstdlib>

#include "vfmgr/netlink/devlink.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr;
    auto const bytes = std::as_bytes(std::span(data, size));
    static_cast<void>(parse_family(bytes));
    static_cast<void>(parse_eswitch_mode(bytes));
    if (parse_vf_port(bytes, {"pci", "0000:01:00.0"}) && parse_vf_port(bytes, {"pci", "other"}))
        std::abort();
    auto const parameters = parse_parameter(bytes, {"pci", "0000:01:00.0"});
    for (auto const& parameter : parameters)
        if (parameter.name.empty()) std::abort();
    if (!parameters.empty() && !parse_parameter(bytes, {"pci", "other"}).empty()) std::abort();
    return 0;
}
