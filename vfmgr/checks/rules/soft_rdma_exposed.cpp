// SPDX-License-Identifier: Apache-2.0
// What reaches SoftRoCE: the kernel parses its packets before anything checks their sender.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/port_lines.hpp"
#include "vfmgr/machine/rdma_ports.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::string_view ruleset_command = "nft -t list ruleset";
constexpr std::string_view roce_port = "4791";

bool is_public(IpAddress const& address) {
    static constexpr std::array<std::string_view, 9> closed{
        "10.0.0.0/8",  "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16",
        "127.0.0.0/8", "fc00::/7",      "fe80::/10",      "::1/128"};
    return std::ranges::none_of(closed, [&](std::string_view prefix) {
        auto const parsed = IpPrefix::parse(prefix);
        return parsed && parsed->contains(address);
    });
}

// Returns why packets from other networks arrive there; empty if only those of its own network do.
std::string way_in(Machine const& machine, MachineNetdev const& netdev) {
    auto const& facts = machine.facts;
    auto const v4 = parse_default_routes4(facts.text("/proc/net/route").value_or(""));
    auto const v6 = parse_default_routes6(facts.text("/proc/net/ipv6_route").value_or(""));
    if (v4.contains(netdev.name) || v6.contains(netdev.name)) return "has the default route";
    for (auto const& one : addresses_on(machine, netdev))
        if (is_public(one.address))
            return fmt::format("has the public address {}", to_string(one.address));
    return {};
}

// Accepts only what comes from the netdev's own networks.
Remedy limit_to_neighbours(Machine const& machine, MachineNetdev const& netdev) {
    std::string const rule =
        fmt::format("nft add rule inet softroce input iifname {} ", netdev.name);
    Remedy remedy{
        {"nft add table inet softroce",
         "nft add chain inet softroce input '{ type filter hook input priority filter - 1; "
         "policy accept; }'"},
        BlastRadius::none,
        "this lasts until the next boot: add it to /etc/nftables.conf. Also keep the kernel up to "
        "date: packets from any sender have crashed SoftRoCE (CVE-2026-46133)"};
    for (auto const& one : addresses_on(machine, netdev))
        remedy.commands.push_back(
            fmt::format("{}{} saddr {} udp dport {} accept", rule,
                        one.address.family == IpAddress::Family::v4 ? "ip" : "ip6",
                        to_string(network_of(one.address, one.prefix_length)), roce_port));
    remedy.commands.push_back(fmt::format("{}udp dport {} drop", rule, roce_port));
    return remedy;
}

Finding judge_exposed_port(Machine const& machine, RdmaPortView const& view) {
    auto const& netdev = *view.netdev;
    auto const& name = view.device->name;
    auto const way = way_in(machine, netdev);
    if (way.empty())
        return ok(name, fmt::format("can be reached only from {}'s own network", netdev.name));
    auto const ruleset = machine.facts.command(ruleset_command);
    auto const filter_line = ruleset ? filter_of_port((*ruleset)->out, roce_port) : FilterLine{};
    bool const is_read = ruleset && (*ruleset)->exit_status == 0;
    if (is_read && filter_line.filter == PortFilter::limited)
        return ok(name,
                  fmt::format("{} {}, but the packet filter limits who reaches UDP port {}",
                              netdev.name, way, roce_port),
                  {{std::string(ruleset_command), filter_line.line}});
    if (auto hidden = unread_so_far(machine, name)) return std::move(*hidden);
    std::vector<Evidence> evidence{evidence_of(machine, "/proc/version")};
    if (is_read)
        evidence.push_back({std::string(ruleset_command), filter_line.line.empty()
                                                              ? "has no rule for that port"
                                                              : filter_line.line});
    else
        evidence.push_back({std::string(ruleset_command), ruleset ? "failed: only root may read it"
                                                                  : to_string(ruleset.error())});
    return warning(
        name,
        fmt::format("{} {}: any host that reaches UDP port {} there can send packets that the "
                    "kernel's SoftRoCE parses{}",
                    netdev.name, way, roce_port,
                    is_read ? "" : "; it is not known whether a packet filter drops them"),
        limit_to_neighbours(machine, netdev), std::move(evidence));
}

std::vector<Finding> judge_exposed(Machine const& machine) {
    std::vector<Finding> findings;
    for (auto const& view : rdma_ports(machine)) {
        // vfmgrd's links have its packet filter in front.
        if (!view.software || !view.netdev || view.device->name.starts_with("vfmgr_") ||
            is_iwarp(machine, *view.device))
            continue;
        findings.push_back(judge_exposed_port(machine, view));
    }
    return or_else(
        std::move(findings),
        nothing_in(machine.rdma_devices(), "there is no SoftRoCE link except vfmgrd's own"));
}

constexpr std::array rules_of_exposure{
    Rule{"soft_rdma.exposed", "SoftRoCE can't be reached from other networks",
         "Linux drivers/infiniband/sw/rxe/rxe_recv.c and its CVEs; IANA, UDP port 4791",
         judge_exposed},
};

}  // namespace

constinit std::span<Rule const> const soft_rdma_exposure_rules = rules_of_exposure;

}  // namespace vfmgr::checks
