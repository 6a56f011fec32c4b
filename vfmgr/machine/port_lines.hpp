// SPDX-License-Identifier: Apache-2.0
// Parses short texts about ports and what reaches them. Pure; any thread.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/addresses.hpp"

namespace vfmgr::checks {

// "mlx5_core 0000:1a:00.0: Port module event: module 0, Cable plugged", and with "event[error]".
struct ModuleEvent {
    std::optional<PciAddress> pci;  // as in the line; some loggers cut it off
    unsigned module = 0;
    std::string_view status;  // "Cable unplugged", "Cable error, Bus stuck"; views the line
    [[nodiscard]] bool plugged() const { return status == "Cable plugged"; }
    [[nodiscard]] bool hot() const { return status.find("High Temperature") != status.npos; }
};
[[nodiscard]] std::optional<ModuleEvent> parse_module_event(std::string_view line);

// "400 Gb/sec (4X NDR)".
struct PortRate {
    double gbps = 0;
    unsigned lanes = 0;
    bool operator==(PortRate const&) const = default;
};
[[nodiscard]] std::optional<PortRate> parse_port_rate(std::string_view text);

// Netdevs with a default route, from lines of /proc/net/route and /proc/net/ipv6_route.
[[nodiscard]] std::set<std::string> parse_default_routes4(std::string_view lines);
[[nodiscard]] std::set<std::string> parse_default_routes6(std::string_view lines);

// "rdma link add rxe0 type rxe netdev eth0" in a unit or script.
struct RdmaLinkCommand {
    std::string name, type, netdev;
    bool operator==(RdmaLinkCommand const&) const = default;
};
[[nodiscard]] std::vector<RdmaLinkCommand> parse_rdma_link_commands(std::string_view text);

// Names of the links that vfmgrd is to make, from `vfctl -o csv rdma link list`:
// "rxe0,rxe,bond0,present,yes,vfmgr,…".
[[nodiscard]] std::set<std::string, std::less<>> parse_vfmgr_links(std::string_view lines);

// What `nft list ruleset` has for a UDP port: a rule about it, or a chain that drops what no rule
// accepts. The conditions of a rule are not judged: a rule means that an admin has considered it.
enum class PortFilter { unspecified, accepted, limited };
struct FilterLine {
    PortFilter filter = PortFilter::unspecified;
    std::string line;  // the rule or chain
};
[[nodiscard]] FilterLine filter_of_port(std::string_view ruleset, std::string_view port);

}  // namespace vfmgr::checks
