// SPDX-License-Identifier: Apache-2.0
// Any bytes as a line of the kernel's log, a rate, routes and a packet filter's rules.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "vfmgr/machine/port_lines.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::checks;
    auto const require = [](bool promise) {
        if (!promise) std::abort();
    };
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    if (auto const event = parse_module_event(text)) {
        require(event->module <= 255 && event->status.starts_with("Cable "));
        require(event->status.data() + event->status.size() == text.data() + size);
    }
    if (auto const rate = parse_port_rate(text))
        require(rate->gbps > 0 && rate->gbps <= 1e5 && rate->lanes <= 16);
    for (auto const& netdev : parse_default_routes4(text)) require(!netdev.empty());
    for (auto const& netdev : parse_default_routes6(text)) require(netdev != "lo");
    for (auto const& command : parse_rdma_link_commands(text))
        require(!command.name.empty() && !command.type.empty() && !command.netdev.empty());
    for (auto const& name : parse_vfmgr_links(text))
        require(!name.empty() && name.find_first_of(",\n") == name.npos);
    auto const told = filter_of_port(text, "4791");
    require((told.filter == PortFilter::unspecified) == told.line.empty());
    require(told.line.find('\n') == told.line.npos);
    return 0;
}
