// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/pf_standing.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace vfmgr {
namespace {

bool is_fresh(PfState const& pf) {
    return !pf.stale && !pf.stuck;
}

PfIdentity kept_of(DesiredState const& desired, PciAddress const& pf) {
    auto const kept = desired.identities.find(pf);
    return kept == desired.identities.end() ? PfIdentity{} : kept->second;
}

std::optional<PciAddress> where_else(KernelView const& host, PfIdentity const& known,
                                     PciAddress const& than) {
    for (auto const& [address, pf] : host.pfs)
        if (address != than && same_pf(known, pf.info.identity) == SamePf::yes) return address;
    return std::nullopt;
}

// The other address under which the store knows the device that is at this one.
std::optional<PciAddress> kept_under(DesiredState const& desired, PfIdentity const& observed,
                                     PciAddress const& than) {
    for (auto const& [address, known] : desired.identities)
        if (address != than && same_pf(known, observed) == SamePf::yes) return address;
    return std::nullopt;
}

// The identity matches or is not known; what remains is whether the PF is usable.
Standing of_what_is_there(PfState const& pf) {
    if (!is_fresh(pf)) return Standing::unknown;
    return pf.info.driver.empty() ? Standing::driver_unbound : Standing::here;
}

// At the stored address the serial alone is enough: the card is the same, and so is the function's
// number.
bool is_proved(PfIdentity const& known, PfIdentity const& observed) {
    auto const same = same_pf(known, observed);
    return same == SamePf::yes ||
           (same == SamePf::unknown && known.serial && known.serial == observed.serial);
}

}  // namespace

PfStanding standing_of(KernelView const& host, DesiredState const& desired, PciAddress const& pf) {
    PfStanding standing;
    standing.known = kept_of(desired, pf);
    auto const there = host.pfs.find(pf);
    auto const elsewhere = where_else(host, standing.known, pf);
    if (there == host.pfs.end()) {
        standing.now_at = elsewhere;
        standing.is = elsewhere       ? Standing::renumbered
                      : host.complete ? Standing::gone
                                      : Standing::unknown;
        return standing;
    }
    auto const& observed = there->second.info.identity;
    auto const same = same_pf(standing.known, observed);
    if (same == SamePf::no) standing.other = observed;
    if (same != SamePf::yes) standing.now_at = elsewhere;
    if (empty(standing.known)) standing.was_at = kept_under(desired, observed, pf);
    if (standing.other || standing.now_at || standing.was_at) {
        standing.is = Standing::renumbered;
        return standing;
    }
    standing.is = of_what_is_there(there->second);
    standing.proved = standing.is == Standing::here && is_proved(standing.known, observed);
    return standing;
}

std::optional<Error> wrong_standing(PfStanding const& standing, PciAddress const& pf) {
    auto const address = to_string(pf);
    auto const known = to_string(standing.known);
    if (standing.is == Standing::gone)
        return Error{
            Problem::pf_gone, fmt::format("PF {} ({}) is not on this host", address, known),
            fmt::format("put the card back, or end its attachments: vfctl pf gone {}", address)};
    if (standing.is != Standing::renumbered) return std::nullopt;
    if (standing.was_at)
        return Error{
            Problem::pf_renumbered,
            fmt::format("the PF at {} was at {} before", address, to_string(*standing.was_at)),
            fmt::format("move its stored state to the new address: vfctl pf rekey {} {}",
                        to_string(*standing.was_at), address)};
    auto const there =
        standing.other
            ? fmt::format("another device ({}) is at {}", to_string(*standing.other), address)
            : fmt::format("the device at {} can't be identified", address);
    if (standing.now_at)
        return Error{
            Problem::pf_renumbered,
            fmt::format("PF {} ({}) is now at {}{}", address, known, to_string(*standing.now_at),
                        standing.other ? ", and " + there : ""),
            fmt::format("move its stored state to the new address: vfctl pf rekey {} {}", address,
                        to_string(*standing.now_at))};
    return Error{
        Problem::pf_renumbered,
        fmt::format("PF {} ({}) is not on this host: {}", address, known, there),
        fmt::format("if the new device replaces it: vfctl pf rekey {0} {0}; to end the attachments "
                    "of the PF that is gone: vfctl pf gone {0}",
                    address)};
}

std::optional<Error> standing_trouble(PfStanding const& standing, PciAddress const& pf) {
    if (standing.is != Standing::driver_unbound) return wrong_standing(standing, pf);
    return Error{
        Problem::unavailable,
        fmt::format("{} has no driver, and so no VFs; its attachments are kept", to_string(pf)),
        fmt::format("bind it: echo {} > /sys/bus/pci/drivers_probe", to_string(pf))};
}

Result<void> require_same_pf(HostView const& host, DesiredState const& desired,
                             PciAddress const& pf) {
    auto wrong = wrong_standing(standing_of(host.kernel, desired, pf), pf);
    if (!wrong) return {};
    // A PF without stored state can't be gone.
    auto const kept = kept_pfs(desired);
    if (wrong->problem == Problem::pf_gone && !std::ranges::binary_search(kept, pf)) return {};
    return fail(std::move(*wrong));
}

std::vector<PciAddress> kept_pfs(DesiredState const& desired) {
    std::set<PciAddress> kept;
    for (auto const& [pf, spec] : desired.pfs) kept.insert(pf);
    for (auto const& [id, attachment] : desired.attachments) kept.insert(attachment.vf.pf);
    for (auto const& [vf, quarantine] : desired.quarantine) kept.insert(vf.pf);
    return {kept.begin(), kept.end()};
}

std::optional<PfIdentity> identity_to_keep(KernelView const& host, DesiredState const& desired,
                                           PciAddress const& pf) {
    auto const there = host.pfs.find(pf);
    if (there == host.pfs.end() || !is_fresh(there->second)) return std::nullopt;
    auto const& observed = there->second.info.identity;
    if (kept_under(desired, observed, pf)) return std::nullopt;
    auto const known = kept_of(desired, pf);
    auto next = completed(known, observed);
    return next == known ? std::nullopt : std::optional(std::move(next));
}

namespace {

Result<void> require_gone(HostView const& host, DesiredState const& desired, PciAddress const& pf) {
    auto const kept = kept_pfs(desired);
    if (!std::ranges::binary_search(kept, pf))
        return fail(Problem::not_found,
                    fmt::format("no state is stored for a PF at {}", to_string(pf)),
                    "no action is needed");
    auto const standing = standing_of(host.kernel, desired, pf);
    // A PF with another device in its place is just as gone.
    if (standing.is == Standing::gone || (standing.is == Standing::renumbered && standing.other &&
                                          !standing.now_at && host.kernel.complete))
        return {};
    if (auto wrong = wrong_standing(standing, pf)) return fail(std::move(*wrong));
    if (standing.is == Standing::unknown)
        return fail(
            Problem::unavailable,
            fmt::format("it is not known whether {} is gone: it was not read", to_string(pf)),
            "end the processes that hold its VFs, or reboot the host; then check again: vfctl pf "
            "list");
    return fail(Problem::conflict,
                standing.is == Standing::driver_unbound
                    ? fmt::format("{} is on this host, without a driver", to_string(pf))
                    : fmt::format("{} is on this host", to_string(pf)),
                standing.is == Standing::driver_unbound
                    ? fmt::format("bind it: echo {} > /sys/bus/pci/drivers_probe", to_string(pf))
                    : "end its attachments one by one: vfctl detach ATTACHMENT");
}

std::string reserved(Attachment const& attachment) {
    std::vector<std::string> what;
    auto const& settings = attachment.settings;
    if (settings.mac) what.push_back("MAC " + to_string(*settings.mac));
    if (settings.port_guid) what.push_back("GUID " + to_string(*settings.port_guid));
    if (attachment.address) what.push_back("address " + to_string(*attachment.address));
    return fmt::format("{}", fmt::join(what, ", "));
}

}  // namespace

std::vector<Attachment> attachments_of_pf(DesiredState const& desired, PciAddress const& pf) {
    std::vector<Attachment> attached;
    for (auto const& [id, attachment] : desired.attachments)
        if (attachment.vf.pf == pf) attached.push_back(attachment);
    for (auto const& [vf, quarantine] : desired.quarantine)
        if (vf.pf == pf) attached.push_back(quarantine.attachment);
    std::ranges::sort(attached, {},
                      [](Attachment const& attachment) { return attachment.vf.index; });
    return attached;
}

bool has_alias(std::vector<VmHostdev> const& hostdevs, Attachment const& attachment) {
    return std::ranges::find(hostdevs, hostdev_alias(attachment.id), &VmHostdev::alias) !=
           hostdevs.end();
}

Result<Plan> plan_gone(HostView const& host, DesiredState const& desired, PciAddress const& pf) {
    VFMGR_CHECK(require_gone(host, desired, pf));
    VFMGR_CHECK(require_libvirt(host));
    Plan plan;
    for (auto const& attachment : attachments_of_pf(desired, pf)) {
        auto const* const vm = find_vm(host, attachment.vm_uuid);
        if (auto const kept = reserved(attachment); !kept.empty())
            plan.notes.push_back(
                fmt::format("{} of VF {} stays reserved", kept, to_string(attachment.vf)));
        if (desired.attachments.contains(attachment.id))
            plan.blast_radius.push_back(fmt::format("attachment {} of VM {} ends: VF {}",
                                                    attachment.id, attachment.vm,
                                                    to_string(attachment.vf)));
        if (!vm) {
            if (!attachment.holder)
                plan.notes.push_back(fmt::format("VM {} is gone", attachment.vm));
            continue;
        }
        DetachHostdev const detach{vm->uuid,
                                   attachment.id,
                                   attachment.vf,
                                   attachment.vf_pci,
                                   has_alias(vm->live, attachment),
                                   has_alias(vm->config, attachment),
                                   vm->name};
        if (detach.live || detach.config) plan.steps.emplace_back(detach);
    }
    plan.notes.push_back(
        fmt::format("if it does not come back: vfctl pf confirm-gone {}", to_string(pf)));
    return plan;
}

Result<Plan> plan_gone_confirmed(HostView const& host, DesiredState const& desired,
                                 PciAddress const& pf) {
    VFMGR_CHECK(require_gone(host, desired, pf));
    VFMGR_CHECK(require_libvirt(host));
    Plan plan;
    for (auto const& attachment : attachments_of_pf(desired, pf)) {
        if (desired.attachments.contains(attachment.id))
            return fail(Problem::conflict,
                        fmt::format("VF {} is attached to VM {} (attachment {})",
                                    to_string(attachment.vf), attachment.vm, attachment.id),
                        fmt::format("end it first: vfctl pf gone {}", to_string(pf)));
        if (auto const* const vm = find_vm(host, attachment.vm_uuid);
            vm && (has_alias(vm->live, attachment) || has_alias(vm->config, attachment)))
            return fail(
                Problem::vf_in_use,
                fmt::format("VM {} still has VF {} in its XML", vm->name, to_string(attachment.vf)),
                fmt::format("take it out: vfctl pf gone {}", to_string(pf)));
        if (auto const kept = reserved(attachment); !kept.empty())
            plan.blast_radius.push_back(
                fmt::format("{} of VM {} may be assigned to another VF", kept, attachment.vm));
    }
    plan.blast_radius.push_back(fmt::format("the spec of {} is deleted", to_string(pf)));
    return plan;
}

}  // namespace vfmgr
