// SPDX-License-Identifier: Apache-2.0
// LibvirtHypervisor's steps: plug a VF into a VM, and take it out; give a VM a vsock device, and
// its host devices other places.
#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/hypervisor/domain_xml.hpp"
#include "vfmgr/hypervisor/guest_pcie.hpp"
#include "vfmgr/hypervisor/libvirt_domain.hpp"
#include "vfmgr/hypervisor/libvirt_error.hpp"
#include "vfmgr/hypervisor/libvirt_hypervisor.hpp"
#include "vfmgr/hypervisor/marked_xml.hpp"

namespace vfmgr {
namespace {

bool passed(Deadline deadline) {
    return std::chrono::steady_clock::now() >= deadline;
}

char const* name_of(XmlPart part) {
    return part == XmlPart::live ? "live" : "persistent";
}

unsigned flags_of(XmlPart part) {
    return part == XmlPart::live ? VIR_DOMAIN_AFFECT_LIVE : VIR_DOMAIN_AFFECT_CONFIG;
}

// The VM has no such XML: it does not run, or it is transient.
Error no_such_part(AttachHostdev const& step, std::string const& vm, XmlPart part) {
    if (part == XmlPart::live)
        return {Problem::conflict,
                fmt::format("VM {} is not running, so {} can't be plugged into it", vm,
                            to_string(step.pci)),
                fmt::format("start it (virsh start {}), or request persistence config", vm)};
    return {Problem::conflict,
            fmt::format("VM {} is transient, so {} can't be stored in its configuration", vm,
                        to_string(step.pci)),
            "request persistence live, or define the VM in libvirt (virsh define)"};
}

Result<Presence> presence_in(LibvirtDomain const& vm, XmlPart part, AttachHostdev const& step) {
    auto const& xml = part == XmlPart::live ? vm.live : vm.config;
    if (!xml) return fail(no_such_part(step, vm.info.name, part));
    return presence(*xml, part, step);
}

// libvirt returned success, but its own XML contradicts it.
Error not_there(AttachHostdev const& step, std::string const& vm, XmlPart part) {
    return {
        Problem::hypervisor_refused,
        fmt::format("libvirt reported success, but the {} XML of VM {} does not contain {} as {}",
                    name_of(part), vm, to_string(step.pci), hostdev_alias(step.attachment)),
        fmt::format("check the VM's XML: virsh dumpxml {}", vm)};
}

// The requested place in the guest; in the persistent XML, that of the live device if it is free
// there: the device then keeps its name in the guest after the next start.
std::optional<PciAddress> place_of(LibvirtDomain const& vm, XmlPart part,
                                   AttachHostdev const& step) {
    if (step.guest_address) return step.guest_address;
    if (part == XmlPart::live || !vm.live || !vm.config) return std::nullopt;
    auto const* ours = find_alias(*vm.live, hostdev_alias(step.attachment));
    if (!ours || !ours->guest || !can_place(*vm.config, *ours->guest)) return std::nullopt;
    return ours->guest;
}

// The attachment's device by our alias, or an adopted one by its address, until the VM stops.
DomainHostdev const* device_of(std::optional<DomainXml> const& domain, DetachHostdev const& step) {
    if (!domain) return nullptr;
    auto const* const ours = find_alias(*domain, hostdev_alias(step.attachment));
    return ours || !step.by_address.value_or(false) ? ours : find_host_pci(*domain, step.pci);
}

bool is_marked(std::optional<DomainXml> const& domain, MarkHostdev const& step) {
    auto const* const device = domain ? find_host_pci(*domain, step.pci) : nullptr;
    return device && device->alias == step.alias && device->managed == step.managed;
}

// Gives the domain another persistent XML: libvirt replaces all of it, or nothing. `failed`: what
// is said if it refuses.
template <class Step>
Result<void> redefine(virDomainPtr domain, Step const& step,
                      Result<std::string> (*changed)(std::string_view, Step const&),
                      std::string failed) {
    // With its secrets, such as passwords of displays: without them they would be lost.
    constexpr unsigned all = VIR_DOMAIN_XML_INACTIVE | VIR_DOMAIN_XML_SECURE;
    VirText const now(virDomainGetXMLDesc(domain, all));
    if (!now)
        return fail(libvirt_error("virDomainGetXMLDesc",
                                  fmt::format("libvirt returned no XML of VM {}", step.vm)));
    VFMGR_TRY(auto const xml, changed(now.get(), step));
    VirDomain const defined(virDomainDefineXML(virDomainGetConnect(domain), xml.c_str()));
    if (defined) return {};
    return fail(libvirt_error("virDomainDefineXML", std::move(failed)));
}

Result<void> define_marked(virConnectPtr connection, MarkHostdev const& step) {
    VFMGR_TRY(VirDomain const domain, find_domain(connection, step.vm_uuid));
    return redefine(domain.get(), step, marked_xml,
                    fmt::format("libvirt did not name {} in the persistent XML of VM {}",
                                to_string(step.pci), step.vm));
}

// A saved VM starts with the XML that it was saved with.
Result<void> require_off(virDomainPtr domain, std::string const& vm) {
    int const active = virDomainIsActive(domain);
    if (active < 0)
        return fail(libvirt_error("virDomainIsActive",
                                  fmt::format("libvirt did not report whether VM {} runs", vm)));
    if (active == 1)
        return fail(Problem::conflict, fmt::format("VM {} was started meanwhile", vm),
                    fmt::format("virsh shutdown {}, then try again", vm));
    if (virDomainHasManagedSaveImage(domain, 0) == 1)
        return fail(Problem::conflict,
                    fmt::format("VM {} is saved, and goes on with the PCI tree that it has", vm),
                    fmt::format("start it and shut it down; or drop what it has in memory: virsh "
                                "managedsave-remove {}",
                                vm));
    return {};
}

Result<void> define_placed(virConnectPtr connection, PlaceHostdevs const& step) {
    VFMGR_TRY(VirDomain const domain, find_domain(connection, step.vm_uuid));
    VFMGR_CHECK(require_off(domain.get(), step.vm));
    return redefine(
        domain.get(), step, placed_xml,
        fmt::format("libvirt could not store other places for the devices of VM {}", step.vm));
}

// What is known when a detach makes no progress.
struct Unplugging {
    std::string vm;
    bool asked = false;
    bool guest_refused = false;
    bool paused = false;
    std::optional<Error> refusal;  // libvirt's, of the last request
};

Error still_there(DetachHostdev const& step, Unplugging const& state) {
    auto const reason = state.paused          ? "it is paused, so the guest can't release it"
                        : state.guest_refused ? "the guest refused to release it"
                                              : "the guest did not answer the unplug request";
    auto const first = state.paused
                           ? fmt::format("resume VM {} (virsh resume {})", state.vm, state.vm)
                           : fmt::format("unload the VF's driver in VM {} or reboot it", state.vm);
    Error error{
        Problem::timed_out,
        fmt::format("VM {} still has {}: {}", state.vm, to_string(step.pci), reason),
        fmt::format(
            "{}; shutting it down (virsh shutdown {}) always releases the VF, and vfmgrd then ends "
            "the detach by itself",
            first, state.vm)};
    if (state.refusal) error.causes = state.refusal->causes;
    return error;
}

}  // namespace

struct LibvirtHypervisor::ReadBack {
    LibvirtDomain domain;
    std::optional<HypervisorView> view;
};

Result<LibvirtHypervisor::ReadBack> LibvirtHypervisor::read_back(std::string const& uuid,
                                                                 Deadline deadline) {
    auto const observed_at = std::chrono::system_clock::now();
    return session_.call<ReadBack>(
        deadline, fmt::format("describe VM {}", uuid),
        [uuid, observed_at](virConnectPtr connection) -> Result<ReadBack> {
            VFMGR_TRY(VirDomain const domain, find_domain(connection, uuid));
            VFMGR_TRY(auto const pools, read_hostdev_pools(connection));
            VFMGR_TRY(auto read, describe_domain(domain.get(), pools));
            HypervisorView view;
            VFMGR_TRY(view.vfio_variants, takes_vfio_variants(connection));
            view.vms[uuid] = read.info;
            view.observed_at = observed_at;
            return ReadBack{std::move(read), std::move(view)};
        });
}

// One request to libvirt, with everything that its thread needs.
struct LibvirtHypervisor::Request {
    std::string uuid;
    std::string vm;  // name
    std::string pci;
    std::string device;  // XML to attach, or alias to detach
    XmlPart part;
    bool attach = false;
};

// With LIVE|CONFIG in one call, libvirt plugs the device in, then saves: a crash in between leaves
// it live only. Two calls, each read back, show which half was done (LIBVIRT.md#attaching).
Result<Observed> LibvirtHypervisor::perform_step(AttachHostdev const& step, Deadline deadline) {
    VFMGR_TRY(LibvirtDomain before, read(step.vm_uuid, deadline));
    ReadBack vm{std::move(before), {}};
    if (step.live) {
        VFMGR_TRY(vm, attach(step, XmlPart::live, vm.domain, deadline));
    }
    if (step.config) {
        VFMGR_TRY(vm, attach(step, XmlPart::config, vm.domain, deadline));
    }
    return Observed{{}, {}, std::move(vm.view)};
}

Result<LibvirtHypervisor::ReadBack> LibvirtHypervisor::attach(AttachHostdev const& step,
                                                              XmlPart part,
                                                              LibvirtDomain const& before,
                                                              Deadline deadline) {
    VFMGR_TRY(Presence const already, presence_in(before, part, step));
    if (already == Presence::present) return read_back(step.vm_uuid, deadline);
    auto xml = to_xml({step.pci, hostdev_alias(step.attachment), place_of(before, part, step)});
    VFMGR_CHECK(
        ask({step.vm_uuid, before.info.name, to_string(step.pci), std::move(xml), part, true},
            deadline));
    VFMGR_TRY(ReadBack after, read_back(step.vm_uuid, deadline));
    VFMGR_TRY(Presence const now, presence_in(after.domain, part, step));
    if (now != Presence::present) return fail(not_there(step, after.domain.info.name, part));
    return after;
}

Result<Observed> LibvirtHypervisor::perform_step(MarkHostdev const& step, Deadline deadline) {
    VFMGR_TRY(LibvirtDomain const before, read(step.vm_uuid, deadline));
    if (step.config && before.config && !is_marked(before.config, step))
        VFMGR_CHECK(session_.call<void>(
            deadline, fmt::format("name {} of VM {}", to_string(step.pci), step.vm),
            [step](virConnectPtr connection) { return define_marked(connection, step); }));
    VFMGR_TRY(ReadBack after, read_back(step.vm_uuid, deadline));
    auto const& [info, live, config] = after.domain;
    bool const there =
        step.config ? is_marked(config, step) : live && find_host_pci(*live, step.pci);
    if (there) return Observed{{}, {}, std::move(after.view)};
    return fail(Problem::conflict,
                fmt::format("VM {} has no {} in its {} XML, or not as {}", info.name,
                            to_string(step.pci), step.config ? "persistent" : "live",
                            step.alias.value_or("a device without an alias")),
                fmt::format("check the VM's XML: virsh dumpxml {}", info.name));
}

Result<Observed> LibvirtHypervisor::perform_step(AddVsock const& step, Deadline deadline) {
    VFMGR_TRY(LibvirtDomain const before, read(step.vm_uuid, deadline));
    auto const lacks = [](std::optional<DomainXml> const& xml) { return xml && !xml->has_vsock; };
    auto const add = [&](XmlPart part) {
        return ask({step.vm_uuid, before.info.name, "a vsock device", vsock_xml(), part, true},
                   deadline);
    };
    if (step.live && lacks(before.live)) VFMGR_CHECK(add(XmlPart::live));
    if (step.config && lacks(before.config)) VFMGR_CHECK(add(XmlPart::config));
    VFMGR_TRY(ReadBack after, read_back(step.vm_uuid, deadline));
    if ((step.live && lacks(after.domain.live)) || (step.config && lacks(after.domain.config)))
        return fail(Problem::hypervisor_refused,
                    fmt::format("libvirt reported success, but VM {} has no vsock device",
                                before.info.name),
                    fmt::format("check the VM's XML: virsh dumpxml {}", before.info.name));
    return Observed{{}, {}, std::move(after.view)};
}

Result<Observed> LibvirtHypervisor::perform_step(PlaceHostdevs const& step, Deadline deadline) {
    VFMGR_CHECK(session_.call<void>(
        deadline, fmt::format("place host devices in VM {}", step.vm),
        [step](virConnectPtr connection) { return define_placed(connection, step); }));
    VFMGR_TRY(ReadBack after, read_back(step.vm_uuid, deadline));
    auto const& pcie = after.domain.info.pcie;
    if (!pcie || pcie->placed != step.hostdevs)
        return fail(Problem::hypervisor_refused,
                    fmt::format("libvirt reported success, but VM {}'s persistent XML does not "
                                "have the devices at their places",
                                step.vm),
                    fmt::format("check the VM's XML: virsh dumpxml {} --inactive", step.vm));
    return Observed{{}, {}, std::move(after.view)};
}

// Never detaches with LIVE|CONFIG together: that would save the config without the device and
// return success although the guest keeps it (LIBVIRT.md#detaching). By alias the live request does
// not wait, so the domain's job is free while the guest takes its time.
Result<void> LibvirtHypervisor::ask(Request request, Deadline deadline) {
    auto const doing =
        fmt::format("{} {} {} VM {} ({})", request.attach ? "attach" : "detach", request.pci,
                    request.attach ? "to" : "from", request.vm, name_of(request.part));
    return session_.call<void>(
        deadline, doing, [request, doing](virConnectPtr connection) -> Result<void> {
            VFMGR_TRY(VirDomain const domain, find_domain(connection, request.uuid));
            auto const call =
                request.attach ? virDomainAttachDeviceFlags : virDomainDetachDeviceAlias;
            if (call(domain.get(), request.device.c_str(), flags_of(request.part)) == 0) return {};
            return fail(libvirt_error(
                request.attach ? "virDomainAttachDeviceFlags" : "virDomainDetachDeviceAlias",
                "libvirt could not " + doing));
        });
}

// Waits for the domain's job first: a request of a killed vfmgrd, or one that was abandoned at its
// deadline, may still be plugging the device in. A VM that keeps the device has it until it stops,
// and does not get it at its next start.
Result<Observed> LibvirtHypervisor::perform_step(DetachHostdev const& step, Deadline deadline) {
    VFMGR_CHECK(settle(step.vm_uuid, deadline));
    auto live = step.live ? detach_live(step, deadline) : Result<void>();
    bool const kept = !live && live.error().problem == Problem::timed_out;
    if (!live && !kept) return fail(std::move(live).error());
    auto const config = step.config ? detach_config(step, deadline) : Result<void>();
    if (kept) return fail(std::move(live).error());
    if (!config) return fail(config.error());
    return Observed{};
}

// Unplugs by alias: a device that another program plugged in is left alone, even if it is the same
// VF, unless it was adopted. Success means only that the guest was asked; the live XML decides, and
// an event triggers reading it.
Result<void> LibvirtHypervisor::detach_live(DetachHostdev const& step, Deadline deadline) {
    auto alias = hostdev_alias(step.attachment);
    if (step.by_address)
        if (auto const vm = read(step.vm_uuid, deadline))
            if (auto const* const device = device_of(vm->live, step))
                alias = device->alias.value_or(alias);
    auto const give_up = deadline - times_.last_check;
    LibvirtEvents::Watch watch(*events_, step.vm_uuid, alias);
    Unplugging state;
    while (true) {
        auto retry_after = times_.unplug_retry;
        auto vm = read(step.vm_uuid, deadline);
        if (vm) {
            if (!device_of(vm->live, step)) return {};
            state.vm = vm->info.name;
            state.paused = vm->info.state == VmState::paused;
            if (state.asked && passed(give_up)) return fail(still_there(step, state));
            auto asked =
                ask({step.vm_uuid, state.vm, to_string(step.pci), alias, XmlPart::live}, deadline);
            // "already in the process of unplug", or a job held by another: the next read decides.
            state.refusal = asked ? std::nullopt : std::optional(std::move(asked).error());
            state.asked = true;
        } else if (vm.error().problem == Problem::not_found) {
            return {};
        } else if (vm.error().problem != Problem::unavailable || passed(give_up)) {
            return fail(std::move(vm).error());
        } else {
            retry_after = times_.reconnect_retry;
        }
        auto const retry_at = std::min(give_up, std::chrono::steady_clock::now() + retry_after);
        auto news = watch.next(retry_at);
        // Does not retry at once when a guest refuses at once.
        while (news == UnplugNews::refused) {
            state.guest_refused = true;
            news = watch.next(retry_at);
        }
    }
}

Result<void> LibvirtHypervisor::detach_config(DetachHostdev const& step, Deadline deadline) {
    auto const alias = hostdev_alias(step.attachment);
    auto const lacks = [&](Result<LibvirtDomain> const& vm) {
        return vm ? !(vm->config && find_alias(*vm->config, alias))
                  : vm.error().problem == Problem::not_found;
    };
    auto before = read(step.vm_uuid, deadline);
    if (lacks(before)) return {};
    if (!before) return fail(std::move(before).error());
    VFMGR_CHECK(ask({step.vm_uuid, before->info.name, to_string(step.pci), alias, XmlPart::config},
                    deadline));
    auto after = read(step.vm_uuid, deadline);
    if (lacks(after)) return {};
    if (!after) return fail(std::move(after).error());
    return fail(Problem::hypervisor_refused,
                fmt::format("libvirt reported success, but {} is still in the persistent XML of VM "
                            "{} as {}",
                            to_string(step.pci), after->info.name, alias),
                fmt::format("detach it: virsh detach-device-alias {} {} --config", after->info.name,
                            alias));
}

}  // namespace vfmgr
