// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/expected_rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "guest-tools/verify/netdev_stack.hpp"

namespace vfmgr::verify {
namespace {

namespace fs = std::filesystem;

// Overhead of each packet's payload: Ethernet with preamble and gap 38, IPv4 20, UDP 8, BTH 12,
// ICRC 4 (RDMA.md#packet-overhead). The RETH in the first packet of a message is not counted.
constexpr double packet_overhead_bytes = 82;
// A TLP of 256 bytes, which most machines use, has some 24 bytes of overhead.
constexpr double tlp_efficiency = 256.0 / (256 + 24);
constexpr double message_bytes_min = 8192;
constexpr double percent_expected = 80;
// A limiter's bucket lets a short burst through.
constexpr double percent_limited_max = 115;

template <class T>
std::optional<T> number_in(fs::path const& file) {
    std::ifstream in(file);
    T number{};
    return in >> number && number > 0 ? std::optional(number) : std::nullopt;
}

// From 8 GT/s on 128 of 130 bits are data, below that 8 of 10.
double pcie_mbps(PcieLink const& link) {
    double const encoding = link.gigatransfers_per_s < 8 ? 8.0 / 10 : 128.0 / 130;
    return link.gigatransfers_per_s * 1000 * link.lanes * encoding * tlp_efficiency;
}

double wire_efficiency(PathFacts const& facts) {
    return facts.path_mtu / (facts.path_mtu + packet_overhead_bytes);
}

void consider(std::optional<Limit>& least, Limit limit) {
    if (!least || limit.mbps < least->mbps) least = std::move(limit);
}

std::optional<Limit> one_way(PathFacts const& facts, bool sent_by_vf) {
    std::optional<Limit> least;
    auto const efficiency = wire_efficiency(facts);
    // Traffic from a VF to another function of its NIC never reaches the port.
    if (facts.port_mbps && facts.path == TestPath::wire)
        consider(least, {*facts.port_mbps * efficiency,
                         fmt::format("the port ({} Mbit/s)", *facts.port_mbps)});
    if (facts.pcie)
        consider(least, {pcie_mbps(*facts.pcie),
                         fmt::format("the NIC's PCIe link ({} GT/s x{})",
                                     facts.pcie->gigatransfers_per_s, facts.pcie->lanes)});
    if (facts.vf_mbps > 0 && sent_by_vf)
        consider(least, {facts.vf_mbps * efficiency,
                         fmt::format("the VF's rate limit ({} Mbit/s)", facts.vf_mbps)});
    return least;
}

std::optional<Flow> flow_of(TestResult const& test) {
    if (test.name == "read_bandwidth") return Flow::in;
    if (test.name == "bidirectional_bandwidth") return Flow::both;
    if (test.name.ends_with("_bandwidth")) return Flow::out;
    return std::nullopt;
}

// "108 of 1828 Mbit/s, 5.9 % of what the NIC's PCIe link (2.5 GT/s x1) carries".
std::string rate_and_share(TestResult const& test) {
    return fmt::format("{:.0f} of {:.0f} Mbit/s, {}", test.figures.at("bandwidth_mbps"),
                       test.figures.at("achievable_mbps"), test.detail);
}

Warning too_slow(TestResult const& test) {
    return {test.name, fmt::format("{}: {}", test.name, rate_and_share(test)),
            "check for losses and pauses (ethtool -S) and for other load on this NIC, and check "
            "its PCIe slot: lspci -vv shows LnkSta and MaxPayload"};
}

Warning not_limited(TestResult const& test, PathFacts const& facts) {
    return {test.name,
            fmt::format("{}: the VF is faster than its rate limit of {} Mbit/s: {}", test.name,
                        facts.vf_mbps, rate_and_share(test)),
            "check for newer firmware, or limit the rate where the limit is enforced: the NIC "
            "accepted it and does not enforce it"};
}

}  // namespace

PathFacts read_path(std::string const& ifname, fs::path const& sysfs) {
    auto const netdev = pci_netdev(sysfs, ifname);
    PathFacts facts;
    facts.port_mbps = number_in<std::int32_t>(netdev / "speed");                 // -1: no link
    auto const speed = number_in<double>(netdev / "device/current_link_speed");  // "8.0 GT/s PCIe"
    auto const lanes = number_in<unsigned>(netdev / "device/current_link_width");
    if (speed && lanes) facts.pcie = PcieLink{*speed, *lanes};
    return facts;
}

std::optional<Limit> expected_rate(PathFacts const& facts, Flow flow) {
    if (flow != Flow::both) return one_way(facts, flow == Flow::out);
    auto const out = one_way(facts, true);
    auto const in = one_way(facts, false);
    if (!out || !in) return std::nullopt;
    auto const& tighter = out->mbps <= in->mbps ? *out : *in;
    return Limit{out->mbps + in->mbps, tighter.what};
}

std::optional<Warning> compare_rate(TestResult& test, PathFacts const& facts) {
    auto const flow = flow_of(test);
    auto const measured = test.figures.find("bandwidth_mbps");
    if (!flow || measured == test.figures.end() || test.verdict != Verdict::pass)
        return std::nullopt;
    // For short messages the limit is their number, not the bytes.
    auto const message = test.figures.find("message_bytes");
    if (message != test.figures.end() && message->second < message_bytes_min) return std::nullopt;
    auto const limit = expected_rate(facts, *flow);
    if (!limit) return std::nullopt;
    auto const percent = 100 * measured->second / limit->mbps;
    test.figures["achievable_mbps"] = limit->mbps;
    test.figures["achieved_percent"] = percent;
    auto const share = fmt::format("{:.3g} % of what {} carries", percent, limit->what);
    test.detail = test.detail.empty() ? share : test.detail + "; " + share;
    bool const limited = facts.vf_mbps > 0 && *flow == Flow::out &&
                         measured->second > facts.vf_mbps * percent_limited_max / 100;
    if (limited) return not_limited(test, facts);
    if (percent >= percent_expected || facts.software) return std::nullopt;
    return too_slow(test);
}

}  // namespace vfmgr::verify
