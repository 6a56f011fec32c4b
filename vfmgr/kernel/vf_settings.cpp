// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/vf_settings.hpp"

#include <fmt/format.h>
#include <linux/if_arp.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "vfmgr/kernel/quirks.hpp"
#include "vfmgr/kernel/rdma_links.hpp"
#include "vfmgr/kernel/vf_files.hpp"
#include "vfmgr/netlink/devlink.hpp"

namespace vfmgr {
namespace {

struct Target {
    LinuxKernelRoots const& roots;
    NlSocket& socket;
    std::optional<Netdev> const& netdev;  // absent: sysfs only
    PciAddress pci;
    std::string pf;   // its interface, or its address without one
    VfAddresses vfs;  // filled when any change is made in files
    Deadline deadline;
};

// One attribute of one VF that the driver refused.
struct Refusal {
    VfAttribute attribute;
    std::string sentence;  // follows the driver's name: "refused trust on for VF 2 of enp1s0: …"
    int error = 0;         // errno; 0: accepted, but another value is reported
    Cause cause;
};

Refusal refusal_of(Target const& target, VfChange const& change, VfAttribute attribute,
                   NlAck const& ack, std::string call) {
    auto error =
        nl_refusal(ack, std::move(call),
                   fmt::format("refused {} for VF {} of {}",
                               setting_text(change.settings, attribute), change.index, target.pf),
                   {});
    return {attribute, std::move(error.detail), ack.error, std::move(error.causes.front())};
}

// Queries devlink for a NIC that refused; a missing answer changes only the remedy.
std::string remedy_of(Target const& target, Refusal const& refusal) {
    if (refusal.error == 0)
        return fmt::format("see the kernel's log (journalctl -k), or list {} in best_effort",
                           enum_name(refusal.attribute));
    return quirks::remedy_for(
        {refusal.attribute, refusal.error,
         target.netdev ? link_layer_of(*target.netdev) : LinkLayer::ethernet,
         read_eswitch_mode(devlink_device(target.pci), target.deadline).value_or(std::nullopt),
         to_string(target.pci)});
}

// The part of the desired settings of some VFs that one kind of message carries.
struct Desired {
    std::span<VfChange const> changes;
    VfPart part;
    [[nodiscard]] Desired first(std::size_t count) const { return {changes.first(count), part}; }
    [[nodiscard]] Desired from(std::size_t index) const { return {changes.subspan(index), part}; }
};

std::string call_of(Target const& target, Desired const& desired) {
    auto const& [vf, settings] = desired.changes.front();
    if (desired.changes.size() > 1)
        return fmt::format("RTM_SETLINK {} vf {} and {} more", target.pf, vf,
                           desired.changes.size() - 1);
    auto call = fmt::format("RTM_SETLINK {} vf {}", target.pf, vf);
    for (auto const attribute : attributes_of(only(settings, desired.part)))
        call += " " + setting_text(settings, attribute);
    return call;
}

Result<VfVerdict> send(Target const& target, Desired const& desired) {
    return set_vfs(target.socket, call_of(target, desired), target.netdev->ifindex, desired.changes,
                   desired.part, target.deadline);
}

// Sends one attribute alone, or the minimum rate with the maximum that it needs.
Result<NlAck> send_alone(Target const& target, VfChange const& one, VfAttribute attribute,
                         VfPart part) {
    VfChange alone{one.index, only(one.settings, attribute)};
    if (attribute == VfAttribute::min_tx_rate)
        alone.settings.max_tx_rate_mbps = one.settings.max_tx_rate_mbps;
    VFMGR_TRY(auto verdict, send(target, {std::span(&alone, 1), part}));
    bool const zero_mac = attribute == VfAttribute::mac && alone.settings.mac == MacAddress{};
    if (verdict.ack.ok() || !zero_mac) return verdict.ack;
    alone.settings.mac = quirks::stand_in_mac;
    VFMGR_TRY(verdict, send(target, {std::span(&alone, 1), part}));
    return verdict.ack;
}

// The kernel stops at the first attribute that the driver refuses and does not report which: send
// each alone. Attributes that were already applied are applied again, to the same effect.
Result<std::vector<Refusal>> send_one_by_one(Target const& target, VfChange const& one,
                                             VfPart part) {
    std::vector<Refusal> refusals;
    for (auto const attribute : attributes_of(only(one.settings, part))) {
        VFMGR_TRY(auto const ack, send_alone(target, one, attribute, part));
        if (ack.ok()) continue;
        VfChange const alone{one.index, only(one.settings, attribute)};
        refusals.push_back(
            refusal_of(target, one, attribute, ack, call_of(target, {std::span(&alone, 1), part})));
    }
    return refusals;
}

using Refusals = std::map<std::uint16_t, std::vector<Refusal>>;  // by VF

// Sends as many VFs in one message as fit. Halves a refused message until it finds the VF whose
// attribute was refused; the other VFs in it get all of their attributes.
Result<void> configure(Target const& target, Desired desired, Refusals& refused) {
    while (!desired.changes.empty()) {
        VFMGR_TRY(auto const verdict, send(target, desired));
        auto const sent = desired.first(verdict.carried);
        desired = desired.from(verdict.carried);
        if (verdict.ack.ok()) continue;
        if (auto const half = verdict.carried / 2; half > 0) {
            VFMGR_CHECK(configure(target, sent.first(half), refused));
            VFMGR_CHECK(configure(target, sent.from(half), refused));
            continue;
        }
        auto const& one = sent.changes.front();
        VFMGR_TRY(auto refusals, send_one_by_one(target, one, sent.part));
        auto& mine = refused[one.index];
        mine.insert(mine.end(), refusals.begin(), refusals.end());
    }
    return {};
}

// rtnetlink carries all others when the PF has an interface for it; RoCE is devlink's.
bool in_a_file(Target const& target, VfAttribute attribute) {
    return attribute != VfAttribute::roce &&
           (attribute == VfAttribute::msix_vectors || !target.netdev);
}

bool in_files(Target const& target, VfSpec const& settings) {
    if (target.netdev) return settings.msix_vectors.has_value();
    return settings != only(settings, VfAttribute::roce);
}

std::optional<Refusal> write_file(Target const& target, VfChange const& one, VfAttribute attribute,
                                  PciAddress const& pf) {
    auto const file =
        vf_file(target.roots, {pf, one.index}, target.vfs.at(one.index), one.settings, attribute);
    auto const error = file ? write_text(file->path, file->text) : EOPNOTSUPP;
    if (error == 0) return std::nullopt;
    return refusal_of(target, one, attribute, {error, {}},
                      file ? "write " + file->path.string()
                           : fmt::format("no file for {}", enum_name(attribute)));
}

void write_files(Target const& target, ConfigureVfs const& step, Refusals& refused) {
    for (auto const& change : step.changes) {
        if (!in_files(target, change.settings)) continue;
        for (auto const attribute : attributes_of(change.settings)) {
            if (!in_a_file(target, attribute)) continue;
            auto refusal = write_file(target, change, attribute, step.pf);
            if (refusal) refused[change.index].push_back(std::move(*refusal));
        }
    }
}

bool sets_roce(VfChange const& change) {
    return change.settings.roce.has_value();
}

// Returns the driver's refusal, or EOPNOTSUPP where the VF has no port: in legacy mode.
Result<NlAck> write_roce(Target const& target, std::vector<VfPort> const& ports,
                         VfChange const& change) {
    auto const port = std::ranges::find(ports, change.index, &VfPort::vf);
    if (port == ports.end()) return NlAck{EOPNOTSUPP, "devlink has no port of this VF"};
    return set_roce(devlink_device(target.pci), *port, *change.settings.roce, target.deadline);
}

Result<void> write_by_devlink(Target const& target, ConfigureVfs const& step, Refusals& refused) {
    if (std::ranges::none_of(step.changes, sets_roce)) return {};
    VFMGR_TRY(auto const ports, list_vf_ports(devlink_device(target.pci), target.deadline));
    for (auto const& change : step.changes) {
        if (!sets_roce(change)) continue;
        VFMGR_TRY(auto const ack, write_roce(target, ports, change));
        if (ack.ok()) continue;
        auto call = "DEVLINK_CMD_PORT_SET " + setting_text(change.settings, VfAttribute::roce);
        refused[change.index].push_back(
            refusal_of(target, change, VfAttribute::roce, ack, std::move(call)));
    }
    return {};
}

template <class Map>
auto const& found_or_none(Map const& by_vf, std::uint16_t vf) {
    static typename Map::mapped_type const none;
    auto const found = by_vf.find(vf);
    return found == by_vf.end() ? none : found->second;
}

Result<void> send_all(Target const& target, std::span<VfChange const> changes, Refusals& refused) {
    for (auto const part : vf_parts) {
        bool const any = std::ranges::any_of(
            changes, [part](VfChange const& change) { return has(change.settings, part); });
        if (any) VFMGR_CHECK(configure(target, {changes, part}, refused));
    }
    return {};
}

// Checks that the driver now reports what it accepted. Values that it does not report are skipped.
std::vector<Refusal> compare(Target const& target, VfChange const& change, VfSpec const& reported,
                             std::vector<Refusal> const& refused) {
    std::vector<Refusal> differences;
    if (holds(change.settings, reported)) return differences;  // the usual case
    for (auto const attribute : attributes_of(change.settings)) {
        bool const known = std::any_of(refused.begin(), refused.end(), [&](Refusal const& each) {
            return each.attribute == attribute;
        });
        if (known || empty(only(reported, attribute)) ||
            holds(change.settings, reported, attribute))
            continue;
        differences.push_back({attribute,
                               fmt::format("accepted {} for VF {} of {} but reports {}",
                                           setting_text(change.settings, attribute), change.index,
                                           target.pf, setting_text(reported, attribute)),
                               0,
                               {"read back " + target.pf, "EIO", "read back differs"}});
    }
    return differences;
}

// Refused, but already in effect: an undo writes values that a driver in trouble never changed, and
// a NIC in DPU mode refused even to clear a VLAN until 2022 (quirks.hpp, foreign_switch). A MAC
// that the guest may have set does not count (to_write()).
bool so_already(VfChange const& change, VfSpec const& reported, VfAttribute attribute) {
    return holds(change.settings, reported, attribute) &&
           (attribute != VfAttribute::mac || change.settings.mac->zero());
}

bool tolerated(ConfigureVfs const& step, Refusal const& refusal) {
    auto const name = enum_name(refusal.attribute);
    return std::find(step.best_effort.begin(), step.best_effort.end(), name) !=
           step.best_effort.end();
}

// Queries the NIC's driver once, and a remedy only for refusals that fail the step.
Result<Observed> judge(Target const& target, ConfigureVfs const& step,
                       std::vector<Refusal> const& refusals) {
    Observed observed;
    if (refusals.empty()) return observed;
    auto const driver = driver_of(target.roots, target.pci).value_or("the driver");
    Error error{Problem::kernel_refused, {}, {}};
    for (auto const& refusal : refusals) {
        if (tolerated(step, refusal)) {
            observed.remarks.push_back(driver + " " + refusal.sentence);
            continue;
        }
        if (error.causes.empty()) {
            error.detail = driver + " " + refusal.sentence;
            error.remedy = remedy_of(target, refusal);
        }
        error.causes.push_back(refusal.cause);
    }
    if (error.causes.empty()) return observed;
    if (error.causes.size() > 1)
        error.detail += fmt::format(" (and {} more refusals)", error.causes.size() - 1);
    return fail(std::move(error));
}

// Without an interface, only settings with sysfs files can be made.
Result<void> require_files(Target const& target, ConfigureVfs const& step) {
    if (target.netdev) return {};
    for (auto const& change : step.changes)
        for (auto const attribute : attributes_of(change.settings))
            if (in_a_file(target, attribute) &&
                !vf_file(target.roots, {step.pf, change.index}, target.vfs.at(change.index),
                         change.settings, attribute))
                return fail(
                    Problem::unsupported,
                    fmt::format(
                        "{} has no network interface through which its VFs can be configured",
                        target.pf),
                    "bind the PF to its network driver; an InfiniBand PF needs ib_ipoib");
    return {};
}

// Returns what to write, where that depends on the current state. Writing never depends on the
// report: where the kernel can't report all VFs, everything is written.
std::vector<VfChange> changes_to_write(Target const& target, std::vector<VfChange> changes) {
    auto const report =
        read_vf_settings(target.socket, target.pf, target.netdev->ifindex, target.deadline)
            .value_or(VfSettings{});
    for (auto& [index, settings] : changes)
        settings = to_write(settings, found_or_none(report, index));
    return changes;
}

Result<void> write_by_netlink(Target const& target, ConfigureVfs const& step, Refusals& refused) {
    if (!target.netdev) return {};
    bool const depends = std::ranges::any_of(
        step.changes, [](VfChange const& change) { return depends_on_report(change.settings); });
    if (!depends) return send_all(target, step.changes, refused);
    return send_all(target, changes_to_write(target, step.changes), refused);
}

// Returns rtnetlink's report of all VFs, plus what sysfs and devlink report for VFs changed there.
Result<VfSettings> read_back(Target const& target, ConfigureVfs const& step) {
    VfSettings report;
    if (target.netdev) {
        VFMGR_TRY(report, read_vf_settings(target.socket, target.pf, target.netdev->ifindex,
                                           target.deadline));
    }
    for (auto const& [index, settings] : step.changes) {
        if (!in_files(target, settings)) continue;
        auto& vf = report[index];
        vf = overlay(read_vf_files(target.roots, {step.pf, index}, target.vfs.at(index)), vf);
    }
    if (std::ranges::none_of(step.changes, sets_roce)) return report;
    VFMGR_TRY(auto const ports, list_vf_ports(devlink_device(target.pci), target.deadline));
    for (auto const& port : ports) report[port.vf].roce = port.roce;
    return report;
}

// The kernel makes VFs from 0 without a gap, all or none (drivers/pci/iov.c, sriov_add_vfs()): if
// the last one exists, so do the others.
Result<void> require_vfs(LinuxKernelRoots const& roots, OpenPf const& pf,
                         ConfigureVfs const& step) {
    auto const last = std::ranges::max_element(step.changes, {}, &VfChange::index);
    if (last != step.changes.end() && !pf.has_vf(last->index))
        VFMGR_CHECK(vf_address(roots, {step.pf, last->index}));
    return {};
}

Result<Target> target_of(LinuxKernelRoots const& roots, OpenPf& pf, ConfigureVfs const& step,
                         Deadline deadline) {
    auto const& netdev = pf.netdev();
    auto name = netdev ? netdev->name : to_string(step.pf);
    Target target{roots, pf.socket(), netdev, step.pf, std::move(name), {}, deadline};
    bool const files = std::ranges::any_of(
        step.changes, [&](VfChange const& change) { return in_files(target, change.settings); });
    if (files) {
        VFMGR_TRY(target.vfs, list_vfs(roots, step.pf));
    }
    return target;
}

}  // namespace

Result<Observed> perform_step(LinuxKernelRoots const& roots, OpenPf& pf, ConfigureVfs const& step,
                              Deadline deadline) {
    VFMGR_CHECK(require_vfs(roots, pf, step));
    VFMGR_TRY(auto const target, target_of(roots, pf, step, deadline));
    VFMGR_CHECK(require_files(target, step));
    Refusals refused;
    VFMGR_CHECK(write_by_netlink(target, step, refused));
    write_files(target, step, refused);
    VFMGR_CHECK(write_by_devlink(target, step, refused));
    auto const after = read_back(target, step);
    VfSettings const nothing;
    auto const& report = after ? *after : nothing;
    std::vector<Refusal> all;
    for (auto const& change : step.changes) {
        auto const& mine = found_or_none(refused, change.index);
        auto const& reported = found_or_none(report, change.index);
        std::ranges::copy_if(mine, std::back_inserter(all), [&](Refusal const& each) {
            return !so_already(change, reported, each.attribute);
        });
        if (!after) continue;
        auto const differences = compare(target, change, reported, mine);
        all.insert(all.end(), differences.begin(), differences.end());
    }
    VFMGR_TRY(auto observed, judge(target, step, all));
    if (!after)
        observed.remarks.push_back("the settings could not be read back: " +
                                   detail_with_causes(after.error()));
    return observed;
}

}  // namespace vfmgr
