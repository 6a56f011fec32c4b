// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/drift.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/external.hpp"
#include "vfmgr/plan/free_vfs.hpp"
#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/pf_standing.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

constexpr auto hostdev = "hostdev";
constexpr auto device = "device";

std::string driver_name(std::optional<std::string> const& driver) {
    return driver ? fmt::format("bound to {}", *driver) : "unbound";
}

Drift of_pf(PciAddress const& pf, std::string what, std::string found, std::string sentence) {
    return {pf, {}, std::move(what), std::move(found), std::move(sentence)};
}

// Begins every sentence about an attachment's VF.
struct InVm {
    Attachment const& attachment;
    std::vector<Drift>& into;

    void report(std::string what, std::string found, std::string const& is) const {
        auto const& [pf, index] = attachment.vf;
        into.push_back({pf, index, std::move(what), std::move(found),
                        fmt::format("VF {}, attached to VM {}, {}", index, attachment.vm, is),
                        attachment.id, attachment.vm});
    }
};

// The text of one member, as in "vlan 100 qos 0 802.1q".
std::string value_text(VfSpec const& settings, VfAttribute attribute) {
    return settings_sentence(only(settings, attribute));
}

void compare_settings(InVm const& in_vm, VfState const& vf) {
    auto const different = drifted_settings(in_vm.attachment, vf);
    for_each_member([&](VfAttribute attribute, auto member) {
        if (!(different.*member)) return;
        auto const found = value_text(vf.settings, attribute);
        in_vm.report(std::string(enum_name(attribute)), found,
                     fmt::format("has {} instead of {}", found, value_text(different, attribute)));
    });
}

// Compares the host's part of what attachments need: the PF up, addresses, peers, an RDMA link.
void compare_links(DesiredPf const& desired_pf, Networks const& networks, PfState const& pf,
                   std::vector<Attachment> const& attachments, std::vector<Drift>& into) {
    if (!desired_pf.base || attachments.empty()) return;
    auto const links = desired_links(pf.info.pci, networks, *desired_pf.base, attachments);
    for (auto const& step : links_up(pf, links, *desired_pf.base)) {
        auto const lacks = sentence(step);
        into.push_back(
            of_pf(pf.info.pci, lacks, "absent",
                  fmt::format("{} is not set up as its attachments need it; still to do: {}",
                              display_name(pf.info), lacks)));
    }
}

// Reports listeners on each network with an attachment. Never ends the listening program.
void compare_listeners(Networks const& networks, PfState const& pf,
                       std::vector<Attachment> const& attachments, std::vector<Drift>& into) {
    for (auto const& [name, each] : networks) {
        auto const& network = each.network;
        auto const used = std::ranges::find_if(attachments, [&](Attachment const& attachment) {
            return attachment.spec.network == network.name;
        });
        if (used == attachments.end()) continue;
        for (auto const& listener : reached_listeners(pf, networks, network))
            into.push_back(of_pf(
                pf.info.pci, fmt::format("rdma listener {} {}", name, listener.port), listener.comm,
                fmt::format("{}, where VMs on network {} reach it: stop it, or have it "
                            "listen elsewhere",
                            sentence(listener, pf.info), name)));
    }
}

// QEMU and the kernel remove the device in either order: an early observation may find a VF gone
// whose device is still in the XML.
bool is_lost(MissingHostdev const& missing, bool gone, Attachment const& attachment,
             VmInfo const& vm) {
    return missing.live || (gone && attachment.live && is_running(vm));
}

void compare_attachment(Attachment const& attachment, PfState const& pf, HostView const& host,
                        std::vector<Drift>& into) {
    InVm const in_vm{attachment, into};
    auto const vf = std::ranges::find(pf.vfs, attachment.vf.index, &VfState::index);
    bool const gone = vf == pf.vfs.end();
    auto const* const vm = host.hypervisor.stale ? nullptr : find_vm(host, attachment.vm_uuid);
    auto const missing = vm ? missing_hostdev(attachment, *vm) : MissingHostdev{};
    if (vm && is_lost(missing, gone, attachment, *vm))
        in_vm.report(hostdev, "absent",
                     gone ? "is gone from that VM, which is running"
                          : "is not in that VM, which is running");
    else if (gone)
        in_vm.report("presence", "absent", "is gone");
    if (missing.config)
        in_vm.report("persistent hostdev", "absent", "is not in the persistent XML of that VM");
    if (gone) return;
    if (vf->pci != attachment.vf_pci)
        in_vm.report(
            "presence", to_string(vf->pci),
            fmt::format("moved from {} to {}", to_string(attachment.vf_pci), to_string(vf->pci)));
    if (vf->driver != attachment.driver)
        in_vm.report(
            "driver", driver_name(vf->driver),
            fmt::format("is {} instead of {}", driver_name(vf->driver), attachment.driver));
    if (lacks_its_nodes(attachment, *vf))
        in_vm.report("owner", fmt::format("uid {}", vf->vfio->owner),
                     fmt::format("has VFIO nodes of user {} instead of {}", vf->vfio->owner,
                                 *attachment.holder->uid));
    compare_settings(in_vm, *vf);
}

void compare_pf(DesiredPf const& desired_pf, PfState const& pf, HostView const& host,
                DesiredState const& desired, std::vector<Drift>& into) {
    auto const& spec = desired_pf.spec;
    auto const& pci = pf.info.pci;
    if (spec.num_vfs && *spec.num_vfs != pf.vfs.size())
        into.push_back(of_pf(pci, "num_vfs", fmt::format("{}", pf.vfs.size()),
                             fmt::format("{} has {} VFs, {} are configured", display_name(pf.info),
                                         pf.vfs.size(), *spec.num_vfs)));
    auto const attachments = attached_on(desired, pci);
    compare_links(desired_pf, desired.networks, pf, attachments, into);
    compare_listeners(desired.networks, pf, attachments, into);
    for (auto const& attachment : attachments) compare_attachment(attachment, pf, host, into);
    auto const unbound = bind_unused(host, desired, pf, spec);
    for (auto const index : unbound ? unbound->vfs : std::vector<std::uint16_t>()) {
        auto const found = driver_name(find_vf(host, VfId{pci, index})->driver);
        into.push_back({pci, index, "driver", found,
                        fmt::format("VF {} is {} instead of {}", index, found, *spec.vf_driver)});
    }
}

void compare_free(DesiredState const& desired, PfState const& pf, PfSpec const& spec,
                  std::vector<Drift>& into) {
    for (auto const& [index, lacking] : lacking_on_free(desired, pf, spec)) {
        auto const vf = std::ranges::find(pf.vfs, index, &VfState::index);
        for_each_member([&](VfAttribute attribute, auto member) {
            if (!(lacking.*member)) return;
            auto const found = value_text(vf->settings, attribute);
            into.push_back({pf.info.pci, index, std::string(enum_name(attribute)), found,
                            fmt::format("VF {}, which is not attached, has {} instead of {}", index,
                                        found, value_text(lacking, attribute))});
        });
    }
}

std::string text_of(Error const& wrong) {
    return fmt::format("{}: {}", wrong.detail, wrong.remedy);
}

void compare_there(PfStanding const& standing, DesiredPf const& desired_pf, PfState const& pf,
                   HostView const& host, DesiredState const& desired, std::vector<Drift>& into) {
    auto const& pci = pf.info.pci;
    if (standing.is == Standing::driver_unbound)
        into.push_back(of_pf(pci, "driver", driver_name({}),
                             text_of(standing_trouble(standing, pci).value_or(Error{}))));
    compare_pf(desired_pf, pf, host, desired, into);
    compare_free(desired, pf, desired_pf.spec, into);
}

}  // namespace

std::string key_of(Drift const& drift) {
    return fmt::format("{}/{}/{}", to_string(drift.pf),
                       drift.vf ? fmt::format("{}", *drift.vf) : "-", drift.what);
}

std::string with_owners(Drift const& drift, std::vector<std::string> const& owners) {
    constexpr std::ptrdiff_t owners_named_max = 3;
    if (owners.empty()) return drift.sentence;
    auto const text_of = std::min(std::ssize(owners), owners_named_max);
    auto all = fmt::format("{}; {}", drift.sentence,
                           fmt::join(owners.begin(), owners.begin() + text_of, "; "));
    if (text_of < std::ssize(owners))
        all += fmt::format("; and {} others (see vfctl doctor)", std::ssize(owners) - text_of);
    return all;
}

VfSpec drifted_settings(Attachment const& attachment, VfState const& vf) {
    auto different = reported_to_differ(attachment.settings, vf.settings);
    auto const& may_differ = attachment.spec.best_effort;
    for_each_member([&](VfAttribute attribute, auto member) {
        if (std::ranges::find(may_differ, enum_name(attribute)) != may_differ.end())
            (different.*member).reset();
    });
    return different;
}

MissingHostdev missing_hostdev(Attachment const& attachment, VmInfo const& vm) {
    auto const alias = hostdev_alias(attachment.id);
    return {
        attachment.live && is_running(vm) && !has_hostdev(vm.live, alias, attachment.vf_pci),
        attachment.config && vm.persistent && !has_hostdev(vm.config, alias, attachment.vf_pci)};
}

std::vector<Attachment> changed_by_vms(HostView const& host, DesiredState const& desired) {
    std::vector<Attachment> changed;
    for (auto const& [id, attachment] : desired.attachments) {
        auto const* const vm = find_vm(host, attachment.vm_uuid);
        if (!vm || attachment.state != AttachmentState::attached) continue;
        bool const live =
            attachment.live || has_hostdev(vm->live, hostdev_alias(id), attachment.vf_pci);
        if (vm->name == attachment.vm && live == attachment.live) continue;
        changed.push_back(attachment);
        changed.back().vm = vm->name;
        changed.back().live = live;
    }
    return changed;
}

bool is_loss(Drift const& drift) {
    return drift.what == hostdev;
}

bool is_managed(DesiredPf const& desired_pf) {
    return desired_pf.spec.mode != PfMode::observe;
}

bool can_be_judged(PfState const* pf) {
    return pf && !pf->stale && !pf->stuck;
}

bool can_be_judged(HostView const& host, DesiredState const& desired, PciAddress const& pf) {
    return can_be_judged(find_pf(host, pf)) ||
           wrong_standing(standing_of(host.kernel, desired, pf), pf);
}

std::vector<Drift> find_drift(HostView const& host, DesiredState const& desired) {
    std::vector<Drift> all;
    for (auto const& [pci, _] : desired.pfs)
        std::ranges::move(find_drift_of(pci, host, desired), std::back_inserter(all));
    return all;
}

std::vector<Drift> find_drift_of(PciAddress const& pci, HostView const& host,
                                 DesiredState const& desired) {
    std::vector<Drift> all;
    auto const managed = desired.pfs.find(pci);
    if (managed == desired.pfs.end() || !is_managed(managed->second)) return all;
    auto const standing = standing_of(host.kernel, desired, pci);
    // The desired state requests nothing of another device, so none is compared with it.
    if (auto const wrong = wrong_standing(standing, pci))
        all.push_back(of_pf(pci, device, std::string(code(wrong->problem)), text_of(*wrong)));
    else if (auto const* const pf = find_pf(host, pci); can_be_judged(pf))
        compare_there(standing, managed->second, *pf, host, desired, all);
    return all;
}

}  // namespace vfmgr
