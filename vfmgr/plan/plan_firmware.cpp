// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "vfmgr/plan/firmware.hpp"

namespace vfmgr {
namespace {

std::string joined_assignments(FirmwareSettings const& settings) {
    return fmt::format("{}", fmt::join(assignments(settings), " "));
}

std::string card_name(FirmwareCard const& card) {
    if (card.device_type.empty()) return to_string(card.pci);
    return fmt::format("{} ({})", to_string(card.pci), card.device_type);
}

std::string port_name(HostView const& host, PciAddress const& function) {
    auto const* pf = find_pf(host, function);
    return pf ? display_name(pf->info) : to_string(function);
}

std::string without_setting(std::string_view name) {
    if (name.starts_with("LINK_TYPE_"))
        return name.ends_with("2") ? "it has one port, or its ports are fixed to Ethernet"
                                   : "its ports are fixed to Ethernet";
    return "its firmware does not report it";
}

Result<void> check_known(FirmwareCard const& card, FirmwareSettings const& requested) {
    std::string missing;
    for_each_firmware_setting([&](char const* name, auto member) {
        if (missing.empty() && requested.*member && !((*card.next).*member)) missing = name;
    });
    if (!missing.empty())
        return fail(
            Problem::unsupported,
            fmt::format("{} has no {}: {}", card_name(card), missing, without_setting(missing)),
            fmt::format("leave it out; vfctl firmware show {} shows what it has",
                        to_string(card.pci)));
    if (requested.num_of_vfs && card.counts_per_port)
        return fail(Problem::unsupported,
                    fmt::format("NUM_OF_VFS has no effect on {}: PF_NUM_OF_VF_VALID gives each of "
                                "its ports a count of its own",
                                card_name(card)),
                    fmt::format("set PF_NUM_OF_VF of each port by hand: {} -d {} set "
                                "PF_NUM_OF_VF=…",
                                card.tool ? card.tool->name : "mstconfig", to_string(card.pci)));
    return {};
}

// Ports without SR-IOV in the firmware are no PFs yet: they have nothing to manage.
Result<void> check_ports(HostView const& host, DesiredState const& desired,
                         FirmwareCard const& card) {
    for (auto const& function : card.functions) {
        auto const* pf = find_pf(host, function);
        if (!pf) continue;
        if (pf->stuck)
            return fail(Problem::pf_stuck,
                        fmt::format("{} is stuck: {}", to_string(function), *pf->stuck),
                        "end the processes that hold its VFs, or reboot the host");
        auto const managed = desired.pfs.find(function);
        if (managed == desired.pfs.end() || managed->second.spec.mode == PfMode::observe)
            return fail(Problem::conflict,
                        fmt::format("{} ({}) is a port of this card and is only observed",
                                    port_name(host, function), to_string(function)),
                        fmt::format("manage it first: vfctl pf set {} --mode manage",
                                    port_name(host, function)));
    }
    return {};
}

// Refuses settings that leave fewer VFs after the reset than are requested and restored at boot.
Result<void> check_specs(HostView const& host, DesiredState const& desired,
                         FirmwareCard const& card, FirmwareSettings const& requested) {
    auto const after = overlay(*card.next, requested);
    for (auto const& function : card.functions) {
        auto const managed = desired.pfs.find(function);
        if (managed == desired.pfs.end()) continue;
        auto const vfs = managed->second.spec.num_vfs.value_or(0);
        bool const fewer = requested.num_of_vfs && *requested.num_of_vfs < vfs;
        bool const none = requested.sriov_en == false && vfs > 0;
        if (!fewer && !none) continue;
        return fail(Problem::conflict,
                    fmt::format("{} is configured to have {} VFs, but with {} it could have {}",
                                port_name(host, function), vfs, joined_assignments(requested),
                                none ? 0 : after.num_of_vfs.value_or(0)),
                    fmt::format("configure fewer first: vfctl pf set {} --num-vfs {}",
                                port_name(host, function), none ? 0 : *requested.num_of_vfs));
    }
    return {};
}

Result<void> check_unused(HostView const& host, DesiredState const& desired,
                          FirmwareCard const& card) {
    bool const any_vfs = std::ranges::any_of(card.functions, [&](PciAddress const& function) {
        auto const* pf = find_pf(host, function);
        return pf && !pf->vfs.empty();
    });
    if (any_vfs) VFMGR_CHECK(require_users(host, card_name(card)));
    for (auto const& function : card.functions)
        if (auto const* pf = find_pf(host, function); pf && pf->stale)
            return fail(Problem::unavailable,
                        fmt::format("{} can't be read, so its VFs may be in use: {}",
                                    to_string(function), pf->stale_reason),
                        "try again when the kernel answers for this device");
    auto const uses = card_uses(host, desired, card);
    if (uses.empty()) return {};
    return fail(Problem::vf_in_use,
                fmt::format("VFs of {} are in use: {}", card_name(card), fmt::join(uses, "; ")),
                "drain them first: vfctl detach VM, or virsh detach-device for what vfmgr did not "
                "attach");
}

std::size_t earlier_boots(std::vector<std::string> const& boots, std::string const& now) {
    return static_cast<std::size_t>(
        std::ranges::count_if(boots, [&](std::string const& boot) { return boot != now; }));
}

std::vector<std::string> boots_of(FirmwareTries const& tries, char const* name) {
    auto const found = tries.boots.find(name);
    return found == tries.boots.end() ? std::vector<std::string>{} : found->second;
}

Result<void> check_tries(FirmwareCard const& card, FirmwareTries const& tries,
                         FirmwareSettings const& requested) {
    FirmwareSettings refused;
    for_each_firmware_setting([&](char const* name, auto member) {
        if (requested.*member &&
            earlier_boots(boots_of(tries, name), card.boot_id) >= firmware_boots_max)
            refused.*member = tries.settings.*member;
    });
    if (empty(refused)) return {};
    return fail(Problem::conflict,
                fmt::format("{} did not apply {} in {} boots; vfmgr does not try a third time",
                            card_name(card), joined_assignments(refused), firmware_boots_max),
                "power-cycle the host, which resets a card that a reboot does not; or update its "
                "firmware. Requesting its current values clears these tries");
}

}  // namespace

std::vector<std::string> card_uses(HostView const& host, DesiredState const& desired,
                                   FirmwareCard const& card) {
    std::vector<std::string> sentences;
    for (auto const& function : card.functions)
        for (auto const& use : vf_uses(host, desired, function))
            sentences.push_back(fmt::format("VF {} of {} is {}", use.vf.index,
                                            port_name(host, function), use.reason));
    return sentences;
}

namespace {

// Updates the stored tries: drops a setting that holds by now or for which another value is
// requested, and adds this boot to those that are requested and do not hold. Where the card does
// not report its current values, there is nothing to count.
FirmwareTries with_this_try(FirmwareTries tries, FirmwareCard const& card,
                            FirmwareSettings const& requested) {
    if (!card.current) return tries;
    for_each_firmware_setting([&](char const* name, auto member) {
        auto const& current = (*card.current).*member;
        auto& tried = tries.settings.*member;
        bool const other = (requested.*member).has_value() && requested.*member != tried;
        if (other || tried == current) {
            tried.reset();
            tries.boots.erase(name);
        }
        if (!(requested.*member) || requested.*member == current) return;
        tried = requested.*member;
        auto& boots = tries.boots[name];
        if (std::ranges::find(boots, card.boot_id) == boots.end()) boots.push_back(card.boot_id);
    });
    return tries;
}

FirmwareTries remembered(DesiredState const& desired, FirmwareCard const& card) {
    auto const found = desired.firmware_tries.find(card.pci);
    return found == desired.firmware_tries.end() ? FirmwareTries{} : found->second;
}

}  // namespace

Result<FirmwarePlan> plan_firmware(HostView const& host, DesiredState const& desired,
                                   FirmwareCard const& card, FirmwareSettings const& requested) {
    if (card.problem) return fail(*card.problem);
    if (!card.next)
        return fail(Problem::unsupported,
                    fmt::format("the firmware settings of {} are not known", card_name(card)),
                    fmt::format("see vfctl firmware show {}", to_string(card.pci)));
    VFMGR_CHECK(check_known(card, requested));
    VFMGR_CHECK(check_ports(host, desired, card));
    FirmwarePlan planned{{}, with_this_try(remembered(desired, card), card, requested)};
    VFMGR_CHECK(check_tries(card, planned.tries, requested));
    auto const pending = card.current ? differing(requested, *card.current) : FirmwareSettings{};
    auto const to_set = differing(requested, *card.next);
    if (empty(to_set) && empty(pending)) return planned;
    planned.plan.notes.push_back(
        "takes effect at the card's next reset; one reboot serves all cards. vfmgr resets none; "
        "where no VM has a VF, mstfwreset with level 3 resets the card without a reboot");
    if (empty(to_set)) return planned;
    VFMGR_CHECK(check_specs(host, desired, card, requested));
    VFMGR_CHECK(check_unused(host, desired, card));
    auto const after = overlay(*card.next, to_set);
    if (after.sriov_en == true && after.num_of_vfs == 0)
        planned.plan.notes.emplace_back("NUM_OF_VFS is 0, so the card will still offer no VFs");
    std::vector<std::string> ports;
    for (auto const& function : card.functions) ports.push_back(port_name(host, function));
    planned.plan.blast_radius.push_back(
        fmt::format("nothing now; at its next reset {} starts with {}", fmt::join(ports, " and "),
                    joined_assignments(to_set)));
    planned.plan.steps.emplace_back(SetFirmware{card.pci, to_set, only_named(*card.next, to_set)});
    return planned;
}

std::optional<FirmwarePending> pending_of(DesiredState const& desired, FirmwareCard const& card) {
    if (!card.current || !card.next) return std::nullopt;
    auto const pending = differing(*card.next, *card.current);
    if (empty(pending)) return FirmwarePending::none;
    auto const tries = remembered(desired, card);
    bool a_reboot_did_not_do = false;
    for_each_firmware_setting([&](char const* name, auto member) {
        if (pending.*member && tries.settings.*member == pending.*member &&
            earlier_boots(boots_of(tries, name), card.boot_id) > 0)
            a_reboot_did_not_do = true;
    });
    return a_reboot_did_not_do ? FirmwarePending::power_cycle : FirmwarePending::reboot;
}

}  // namespace vfmgr
