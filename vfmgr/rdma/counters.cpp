// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/rdma/counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string_view>

#include "api/os/file.hpp"
#include "vfmgr/netlink/link.hpp"
#include "vfmgr/netlink/qos.hpp"

namespace vfmgr::verify {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::seconds netlink_time{2};
constexpr std::size_t counters_at_most = 64;  // a report has room for this many

struct Meaning {
    CounterSource source;
    std::string_view name;     // empty: any
    std::string_view meaning;  // {0}: how many, {1}: device, {2}: the counter's name
    std::string_view remedy;
};

// Names as the drivers use them: rtnl_link_stats64; rxe's and mlx5's hw_counters. Retransmissions
// alone are no loss: SoftRoCE's timer fires under load without one (RDMA.md#counters).
constexpr std::array<Meaning, 13> meanings{{
    {CounterSource::qdisc, "",
     "tc dropped {0} packets on {1} (qdisc {2}): a rate limit is set there",
     "tc -s qdisc show dev {1}; tc -s filter show dev {1} {2}"},
    {CounterSource::netdev, "rx_dropped", "{1} dropped {0} received packets ({2})",
     "check for a filter, or enlarge its ring: ethtool -G {1} rx N"},
    {CounterSource::netdev, "rx_missed_errors",
     "the receive ring of {1} had no room for {0} packets ({2})",
     "enlarge its ring: ethtool -G {1} rx N"},
    {CounterSource::netdev, "rx_length_errors", "{1} dropped {0} oversized frames ({2})",
     "set the same MTU on both ends and on every hop between (ip link show {1} shows it)"},
    {CounterSource::netdev, "rx_crc_errors", "{1} received {0} frames with a wrong checksum ({2})",
     "check cable and transceiver: ethtool -m {1}"},
    {CounterSource::netdev, "tx_dropped", "{1} dropped {0} packets instead of sending them ({2})",
     "check for a rate limit on the VF (ip link show) or in tc (tc -s qdisc show dev {1})"},
    {CounterSource::netdev, "tx_carrier_errors",
     "{1} lost its carrier {0} times while sending ({2})", "check the link: ethtool {1}"},
    {CounterSource::rdma, "out_of_seq_request",
     "{1} received {0} requests out of order: some before them were lost ({2})",
     "find where packets are lost: check the counters of switch ports, PFC and ECN"},
    {CounterSource::rdma, "out_of_sequence",
     "{1} received {0} packets out of order: some before them were lost ({2})",
     "find where packets are lost: check the counters of switch ports, PFC and ECN"},
    {CounterSource::rdma, "packet_seq_err",
     "the other end reported lost packets to {1} {0} times ({2})",
     "find where packets are lost: check the counters of switch ports, PFC and ECN"},
    {CounterSource::rdma, "rcvd_seq_err",
     "the other end reported lost packets to {1} {0} times ({2})",
     "find where packets are lost: check the counters of switch ports, PFC and ECN"},
    {CounterSource::rdma, "retry_exceeded_err", "{1} gave up {0} times after all its retries ({2})",
     "check that the other end answers on UDP port 4791: ping it, check its firewall"},
    {CounterSource::rdma, "rx_icrc_encapsulated",
     "{1} received {0} packets with a wrong RDMA checksum, ICRC ({2})",
     "find what changes packets on the way: check for offloads and tunnels"},
}};

Meaning const* meaning_of(Counter const& counter) {
    auto const found = std::ranges::find_if(meanings, [&](Meaning const& each) {
        return each.source == counter.source && (each.name.empty() || each.name == counter.name);
    });
    return found == meanings.end() ? nullptr : found;
}

// The same counter of the same device.
auto find_same(auto& counters, Counter const& counter) {
    return std::ranges::find_if(counters, [&](Counter const& each) {
        return each.source == counter.source && each.device == counter.device &&
               each.name == counter.name;
    });
}

std::optional<std::uint64_t> read_count(fs::path const& file) {
    std::ifstream in(file);
    std::uint64_t count = 0;
    return in >> count ? std::optional(count) : std::nullopt;
}

void read_files(std::vector<Counter>& counters, fs::path const& folder, Counter const& of) {
    for (auto const& each : meanings) {
        if (each.source != of.source || each.name.empty()) continue;
        if (auto const count = read_count(folder / each.name))
            counters.push_back({of.source, of.device, std::string(each.name), *count});
    }
}

void read_qdiscs(std::vector<Counter>& counters, std::vector<std::string> const& stack) {
    auto const deadline = std::chrono::steady_clock::now() + netlink_time;
    auto socket = NlSocket::open(NlProtocol::route);
    if (!socket) return;
    auto const netdevs = list_netdevs(*socket, deadline);
    auto const qdiscs = list_qdiscs(*socket, deadline);
    if (!netdevs || !qdiscs) return;
    for (auto const& qdisc : *qdiscs) {
        auto const on = std::ranges::find(*netdevs, qdisc.ifindex, &Netdev::ifindex);
        if (on == netdevs->end() || std::ranges::find(stack, on->name) == stack.end()) continue;
        // Adds up several qdiscs of one kind, as on a multi-queue NIC.
        Counter const drops{CounterSource::qdisc, on->name, qdisc.kind, qdisc.drops};
        auto const same = find_same(counters, drops);
        if (same == counters.end())
            counters.push_back(drops);
        else
            same->count += qdisc.drops;
    }
}

}  // namespace

std::vector<Counter> read_counters(CounterPlace const& place, fs::path const& sysfs) {
    std::vector<Counter> counters;
    auto const stack = stack_of(sysfs, place.ifname);
    for (auto const& ifname : stack)
        read_files(counters, sysfs / "class/net" / ifname / "statistics",
                   {CounterSource::netdev, ifname, {}, 0});
    if (!place.rdma_device.empty())
        read_files(counters,
                   sysfs / "class/infiniband" / place.rdma_device / "ports" /
                       std::to_string(place.port) / "hw_counters",
                   {CounterSource::rdma, place.rdma_device, {}, 0});
    read_qdiscs(counters, stack);
    if (counters.size() > counters_at_most) counters.resize(counters_at_most);
    return counters;
}

std::vector<Counter> growth(std::vector<Counter> const& before, std::vector<Counter> const& after) {
    std::vector<Counter> grown;
    for (auto const& now : after) {
        auto const then = find_same(before, now);
        auto const count = then == before.end() ? 0 : then->count;
        if (now.count > count)
            grown.push_back({now.source, now.device, now.name, now.count - count});
    }
    return grown;
}

std::vector<Loss> explain_losses(std::vector<Counter> const& grown, Judge side) {
    std::vector<Loss> losses;
    for (auto const& counter : grown) {
        auto const* const meaning = meaning_of(counter);
        if (!meaning || counter.count == 0) continue;
        auto const filled_in = [&](std::string_view text) {
            return fmt::format(fmt::runtime(text), counter.count, counter.device, counter.name);
        };
        auto const* const where = side == Judge::host ? "on the host, " : "in the VM, ";
        losses.push_back(
            {side, counter, where + filled_in(meaning->meaning), filled_in(meaning->remedy)});
    }
    return losses;
}

namespace fs = std::filesystem;

std::vector<std::string> stack_of(fs::path const& sysfs, std::string const& ifname) {
    constexpr std::string_view lower = "lower_";
    std::vector<std::string> stack{ifname};
    for (auto const& entry : paths_in(sysfs / "class/net" / ifname))
        if (auto const name = entry.filename().string(); name.starts_with(lower))
            stack.push_back(name.substr(lower.size()));
    return stack;
}

fs::path pci_netdev(fs::path const& sysfs, std::string const& ifname) {
    std::error_code error;
    for (auto const& name : stack_of(sysfs, ifname))
        if (auto netdev = sysfs / "class/net" / name; fs::exists(netdev / "device", error))
            return netdev;
    return sysfs / "class/net" / ifname;
}

}  // namespace vfmgr::verify
