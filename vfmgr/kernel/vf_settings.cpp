// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/vf_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "vfmgr/kernel/network_snapshot.hpp"
#include "vfmgr/kernel/pf_view.hpp"

namespace vfmgr {
namespace {

struct Target {
    NlSocket& socket;
    Netdev const& pf;
    std::string driver;
    Deadline deadline;
};

// One attribute of one VF that the driver did not take.
struct Refusal {
    VfAttribute attribute;
    std::string sentence;
    std::string remedy;
    Cause cause;
};

std::string remedy_for(VfAttribute attribute, int error) {
    auto const name = enum_name(attribute);
    bool const rate =
        attribute == VfAttribute::max_tx_rate || attribute == VfAttribute::min_tx_rate;
    if (error == EOPNOTSUPP || error == EPROTONOSUPPORT)
        return fmt::format("this driver can't do it: leave {} out, or list it in best_effort",
                           name);
    if (error == EPERM)
        return "the NIC's switch is managed elsewhere (switchdev or DPU mode), or vfmgr lacks "
               "CAP_NET_ADMIN";
    if (error == EINVAL && rate)
        return "the PF's link must be up and the rate within its speed; many drivers know no "
               "minimum: leave it out, or list it in best_effort";
    return fmt::format("choose another value, leave {} out, or list it in best_effort", name);
}

std::string call_of(Target const& target, std::uint16_t vf, VfSpec const& settings) {
    auto call = fmt::format("RTM_SETLINK {} vf {}", target.pf.name, vf);
    for (auto const attribute : attributes_of(settings))
        call += " " + setting_text(settings, attribute);
    return call;
}

Result<NlAck> send(Target const& target, std::uint16_t vf, VfSpec const& settings) {
    return set_vf(target.socket, call_of(target, vf, settings), {target.pf.ifindex, vf, settings},
                  target.deadline);
}

// A message with one attribute, or with the minimum rate and the maximum that goes with it.
Result<NlAck> send_alone(Target const& target, std::uint16_t vf, VfSpec const& settings,
                         VfAttribute attribute) {
    auto alone = only(settings, attribute);
    if (attribute == VfAttribute::min_tx_rate) alone.max_tx_rate_mbps = settings.max_tx_rate_mbps;
    VFMGR_TRY(auto ack, send(target, vf, alone));
    bool const zero_mac = attribute == VfAttribute::mac && alone.mac == MacAddress{};
    if (ack.ok() || !zero_mac) return ack;
    alone.mac = stand_in_mac;
    return send(target, vf, alone);
}

// The kernel stops at the first attribute that the driver refuses and does not say which: ask for
// each alone. What was applied already is applied again, to the same effect.
Result<std::vector<Refusal>> send_one_by_one(Target const& target, std::uint16_t vf,
                                             VfSpec const& settings) {
    std::vector<Refusal> refusals;
    for (auto const attribute : attributes_of(settings)) {
        VFMGR_TRY(auto const ack, send_alone(target, vf, settings, attribute));
        if (ack.ok()) continue;
        auto const text = setting_text(settings, attribute);
        auto error = nl_refusal(
            ack, call_of(target, vf, only(settings, attribute)),
            fmt::format("{} refused {} for VF {} of {}", target.driver, text, vf, target.pf.name),
            remedy_for(attribute, ack.error));
        refusals.push_back({attribute, std::move(error.detail), std::move(error.remedy),
                            std::move(error.causes.front())});
    }
    return refusals;
}

Result<std::vector<Refusal>> configure_one(Target const& target, VfChange const& change,
                                           VfSpec const& reported) {
    std::vector<Refusal> refusals;
    for (auto const& message : messages_of(to_write(change.settings, reported))) {
        VFMGR_TRY(auto const ack, send(target, change.index, message));
        if (ack.ok()) continue;
        VFMGR_TRY(auto refused, send_one_by_one(target, change.index, message));
        refusals.insert(refusals.end(), refused.begin(), refused.end());
    }
    return refusals;
}

// The driver said yes; does it say so afterwards? What it reports not at all can't be asked.
std::vector<Refusal> compare(Target const& target, VfChange const& change, VfSpec const& reported,
                             std::vector<Refusal> const& refused) {
    std::vector<Refusal> differences;
    for (auto const attribute : attributes_of(change.settings)) {
        bool const known = std::any_of(refused.begin(), refused.end(), [&](Refusal const& each) {
            return each.attribute == attribute;
        });
        if (known || empty(only(reported, attribute)) ||
            holds(change.settings, reported, attribute))
            continue;
        differences.push_back(
            {attribute,
             fmt::format("{} accepted {} for VF {} of {} and reports {}", target.driver,
                         setting_text(change.settings, attribute), change.index, target.pf.name,
                         setting_text(reported, attribute)),
             fmt::format("look in the kernel's log, or list {} in best_effort",
                         enum_name(attribute)),
             {fmt::format("RTM_GETLINK {} VFs", target.pf.name), "EIO", "read back differs"}});
    }
    return differences;
}

bool tolerated(ConfigureVfs const& step, Refusal const& refusal) {
    auto const name = enum_name(refusal.attribute);
    return std::find(step.best_effort.begin(), step.best_effort.end(), name) !=
           step.best_effort.end();
}

Result<Observed> judge(ConfigureVfs const& step, std::vector<Refusal> const& refusals) {
    Observed observed;
    Error error{Problem::kernel_refused, {}, {}};
    for (auto const& refusal : refusals) {
        if (tolerated(step, refusal)) {
            observed.refused.push_back(refusal.sentence);
            continue;
        }
        if (error.causes.empty()) {
            error.detail = refusal.sentence;
            error.remedy = refusal.remedy;
        }
        error.causes.push_back(refusal.cause);
    }
    if (error.causes.empty()) return observed;
    if (error.causes.size() > 1)
        error.detail += fmt::format(" (and {} more refusals)", error.causes.size() - 1);
    return fail(std::move(error));
}

Result<Netdev> require_netdev(LinuxKernelRoots const& roots, NlSocket& socket, PciAddress const& pf,
                              Deadline deadline) {
    VFMGR_TRY(auto const netdevs, list_netdevs(socket, deadline));
    if (auto const* const netdev = pf_netdev(roots, netdevs, pf)) return *netdev;
    return fail(Problem::unsupported,
                fmt::format("{} has no network interface through which its VFs could be set",
                            to_string(pf)),
                "bind the PF to its network driver; an InfiniBand PF needs ib_ipoib");
}

}  // namespace

Result<Observed> perform_step(LinuxKernelRoots const& roots, ConfigureVfs const& step,
                              Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_TRY(auto const pf, require_netdev(roots, socket, step.pf, deadline));
    for (auto const& change : step.changes) VFMGR_CHECK(vf_address(roots, {step.pf, change.index}));
    Target const target{socket, pf, driver_of(roots, step.pf).value_or("the driver"), deadline};
    VFMGR_TRY(auto before, read_vf_settings(socket, pf.name, pf.ifindex, deadline));
    std::map<std::uint16_t, std::vector<Refusal>> refused;
    for (auto const& change : step.changes) {
        VFMGR_TRY(refused[change.index], configure_one(target, change, before[change.index]));
    }
    VFMGR_TRY(auto after, read_vf_settings(socket, pf.name, pf.ifindex, deadline));
    std::vector<Refusal> all;
    for (auto const& change : step.changes) {
        auto& mine = refused[change.index];
        auto const differences = compare(target, change, after[change.index], mine);
        all.insert(all.end(), mine.begin(), mine.end());
        all.insert(all.end(), differences.begin(), differences.end());
    }
    return judge(step, all);
}

}  // namespace vfmgr
