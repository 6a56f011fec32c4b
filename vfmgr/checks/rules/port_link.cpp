// SPDX-License-Identifier: Apache-2.0
// The quality of an RDMA port's link: cable and module, speed, packets lost.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "api/types/text.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/machine/port_lines.hpp"
#include "vfmgr/machine/rdma_ports.hpp"

namespace vfmgr::checks {
namespace {

// --- cable ---

struct LastEvent {
    ModuleEvent event;
    LogLine const* line = nullptr;
};

// Returns the last event of each card's module: cables get replugged.
std::vector<LastEvent> last_events(KernelLog const& log) {
    std::map<std::pair<std::optional<PciAddress>, unsigned>, LastEvent> last;
    for (auto const& line : log.lines)
        if (auto const event = parse_module_event(line.text))
            last.insert_or_assign({event->pci, event->module}, LastEvent{*event, &line});
    std::vector<LastEvent> events;
    for (auto const& [key, one] : last) events.push_back(one);
    return events;
}

std::optional<Finding> judge_event(Machine const& machine, LastEvent const& last,
                                   std::vector<RdmaPortView> const& ports) {
    auto const& event = last.event;
    // log.mlx5 reports a module that is too hot.
    if (event.plugged() || event.hot()) return std::nullopt;
    auto const view = std::ranges::find_if(ports, [&](auto const& one) {
        return event.pci && one.pci && one.pci->address == *event.pci;
    });
    bool const known = view != ports.end();
    if (known && view->active()) return std::nullopt;  // it has come up since
    auto const subject = event.pci ? to_string(*event.pci) : fmt::format("module {}", event.module);
    if (auto hidden = unread_so_far(machine, subject)) return hidden;
    auto const use = known ? use_of(machine, *view) : std::string();
    bool const broken = event.status.starts_with("Cable error");
    if (!broken && use.empty())
        return ok(subject,
                  fmt::format("module {}: {}; the port is not in use", event.module, event.status),
                  {evidence_of(*last.line)});
    auto detail = fmt::format("the last event of its module {} is: {}", event.module, event.status);
    if (!use.empty()) detail += fmt::format("; the port is in use: {}", use);
    auto remedy = by_hand(broken ? "unplug the cable or module and plug it in again; if that does "
                                   "not help, replace it with one on the NIC's list of modules"
                                 : "plug a cable in, or switch the module on");
    return (use.empty() ? warning : failed)(subject, std::move(detail), std::move(remedy),
                                            {evidence_of(*last.line)});
}

std::vector<Finding> judge_cable(Machine const& machine) {
    auto const ports = nic_ports(machine);
    if (machine.rdma_devices() && ports.empty()) return {not_applicable("there is no RDMA NIC")};
    if (!machine.log()) return {unknown("", machine.log().error())};
    std::vector<Finding> findings;
    for (auto const& last : last_events(*machine.log()))
        if (auto finding = judge_event(machine, last, ports))
            findings.push_back(std::move(*finding));
    return or_else(std::move(findings),
                   ok("", fmt::format("no known message about a ConnectX's cable in {}",
                                      lines_read(*machine.log()))));
}

// --- speed ---

struct Running {
    RdmaPortView const* view;
    PortRate rate;
};

bool alike(RdmaPortView const& left, RdmaPortView const& right) {
    return left.device->hca_type() == right.device->hca_type() &&
           left.device->board_id() == right.device->board_id() &&
           left.port->link_layer() == right.port->link_layer();
}

// Returns a faster port of the same kind: one with more lanes, because a bad cable loses lanes, or
// one of at least two that all run at one higher speed. Two ports at different speeds may well be
// intended.
Running const* outrunner(Running const& slow, std::vector<Running> const& all) {
    Running const* faster = nullptr;
    int agree = 0, peers = 0;
    for (auto const& other : all) {
        if (other.view == slow.view || !alike(*slow.view, *other.view)) continue;
        ++peers;
        if (!(other.rate.gbps > slow.rate.gbps)) continue;
        bool const lost_lanes =
            other.rate.lanes > slow.rate.lanes &&
            other.rate.gbps * slow.rate.lanes == slow.rate.gbps * other.rate.lanes;
        if (lost_lanes) return &other;
        if (!faster) faster = &other;
        if (faster->rate == other.rate) ++agree;
    }
    return agree >= 2 && agree == peers ? faster : nullptr;
}

std::vector<Finding> judge_speed(Machine const& machine) {
    auto const ports = nic_ports(machine);
    std::vector<Running> running;
    for (auto const& view : ports) {
        auto const rate = parse_port_rate(view.port->rate());
        bool const vf = view.pci && view.pci->pf();
        if (view.active() && rate && !vf) running.push_back({&view, *rate});
    }
    std::vector<Finding> findings;
    for (auto const& one : running) {
        auto const& view = *one.view;
        auto const* const faster = outrunner(one, running);
        auto const evidence = evidence_of(machine, folder_of(view) + "/rate");
        if (!faster) {
            findings.push_back(
                ok(name_of(view), fmt::format("runs at {}", view.port->rate()), {evidence}));
            continue;
        }
        findings.push_back(warning(
            name_of(view),
            fmt::format("runs at {}, but {}, a port of the same kind, runs at {}",
                        view.port->rate(), name_of(*faster->view), faster->view->port->rate()),
            by_hand("check its cable, and the speed of the switch's port: both ends choose "
                    "the best speed that cable and peer support"),
            {evidence, evidence_of(machine, folder_of(*faster->view) + "/rate")}));
    }
    return or_else(std::move(findings),
                   nothing_in(machine.rdma_devices(), "no port of an RDMA NIC is active"));
}

// --- counters ---

std::optional<std::uint64_t> counter(Machine const& machine, RdmaPortView const& view,
                                     std::string_view name) {
    auto const text = machine.facts.text(fmt::format("{}/{}", folder_of(view), name));
    return text ? parse_digits(*text, {}) : std::nullopt;
}

// Relative to packets since the driver was loaded: below one in 10,000, RoCE recovers unnoticed.
constexpr std::uint64_t lost_min = 1000;
constexpr std::uint64_t packets_for_each_lost = 10'000;
constexpr std::uint64_t packets_for_each_error = 1'000'000;

constexpr std::array<std::string_view, 3> losses{"hw_counters/packet_seq_err",
                                                 "hw_counters/out_of_sequence",
                                                 "hw_counters/local_ack_timeout_err"};

std::vector<Evidence> counter_evidence(Machine const& machine, RdmaPortView const& view) {
    std::vector<Evidence> evidence;
    for (auto const name :
         {"counters/port_xmit_packets", "counters/port_rcv_packets", "counters/port_rcv_errors",
          "hw_counters/packet_seq_err", "hw_counters/out_of_sequence",
          "hw_counters/local_ack_timeout_err", "hw_counters/rnr_nak_retry_err",
          "hw_counters/np_cnp_sent", "hw_counters/rp_cnp_handled"})
        if (counter(machine, view, name))
            evidence.push_back(evidence_of(machine, fmt::format("{}/{}", folder_of(view), name)));
    return evidence;
}

std::optional<Finding> judge_losses(Machine const& machine, RdmaPortView const& view) {
    auto const sent = counter(machine, view, "counters/port_xmit_packets");
    auto const received = counter(machine, view, "counters/port_rcv_packets");
    if (!sent || !received) return std::nullopt;
    std::uint64_t lost = 0;
    for (auto const name : losses) lost += counter(machine, view, name).value_or(0);
    auto const errors = counter(machine, view, "counters/port_rcv_errors").value_or(0);
    if (errors >= lost_min && errors > *received / packets_for_each_error)
        return warning(name_of(view),
                       fmt::format("received {} packets with errors among {} since the driver was "
                                   "loaded",
                                   errors, *received),
                       by_hand("clean or replace the cable and its modules; then check whether the "
                               "number still grows"),
                       counter_evidence(machine, view));
    auto const packets = std::max(*sent, *received);
    if (lost < lost_min || lost < packets / packets_for_each_lost)
        return ok(name_of(view),
                  fmt::format("{} of {} packets since the driver was loaded were lost or late",
                              lost, packets),
                  counter_evidence(machine, view));
    return warning(name_of(view),
                   fmt::format("{} of {} packets since the driver was loaded were lost or late, "
                               "and sent again",
                               lost, packets),
                   by_hand("check qos.pfc and qos.dscp here and at the switch, drops at its port, "
                           "and the MTU along the path; then check whether the numbers still grow"),
                   counter_evidence(machine, view));
}

// SoftRoCE counts harmless retransmissions (vfmgr/rdma/RDMA.md#counters): it is left out.
std::vector<Finding> judge_counters(Machine const& machine) {
    std::vector<Finding> findings;
    for (auto const& view : nic_ports(machine))
        if (auto finding = judge_losses(machine, view)) findings.push_back(std::move(*finding));
    return or_else(std::move(findings), nothing_in(machine.rdma_devices(),
                                                   "no port of an RDMA NIC counts packets here"));
}

constexpr std::array rules_of_links{
    Rule{"port.cable", "Cables are plugged in and good",
         "IGX guide, dmesg | grep mlx5_core; Linux mlx5/core/events.c, Port module event",
         judge_cable, AppliesTo::host},
    Rule{"port.speed", "RDMA ports run as fast as others of their kind",
         "Linux drivers/infiniband/core/sysfs.c, rate", judge_speed},
    Rule{"port.counters", "RDMA loses few packets",
         "Linux mlx5/counters.c; NVIDIA, Understanding mlx5 Linux Counters", judge_counters},
};

}  // namespace

constinit std::span<Rule const> const port_link_rules = rules_of_links;

}  // namespace vfmgr::checks
