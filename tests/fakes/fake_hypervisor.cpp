// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/fake_hypervisor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/plan/guest_topology.hpp"

namespace vfmgr {

namespace {

constexpr std::int32_t qemu_pid_base = 4000;

VfioHolder qemu_of(VmInfo const& vm) {
    return {qemu_pid_base + vm.start_id.value_or(0), "qemu-system-x86"};
}

tl::unexpected<Error> hypervisor_refused(std::string detail, std::string remedy) {
    Error error{Problem::hypervisor_refused, std::move(detail), std::move(remedy)};
    error.causes.push_back(
        {"virDomainAttachDeviceFlags", "VIR_ERR_OPERATION_FAILED", error.detail});
    return fail(std::move(error));
}

bool has(std::vector<VmHostdev> const& hostdevs, VmHostdev const& expected) {
    return std::ranges::find(hostdevs, expected) != hostdevs.end();
}

}  // namespace

VmInfo make_vm(std::string name, std::string uuid) {
    VmInfo vm;
    vm.uuid = std::move(uuid);
    vm.name = std::move(name);
    vm.state = VmState::running;
    vm.persistent = true;
    vm.start_id = 1;
    vm.vsock_cid = 3;
    vm.has_vsock = true;
    vm.free_pcie_ports = 2;
    return vm;
}

FakeHypervisor::FakeHypervisor(FakeKernel& kernel) : kernel_(kernel) {}

Result<HypervisorView> FakeHypervisor::observe(HypervisorScope const& scope) {
    std::lock_guard const lock(mutex_);
    ++observed_;
    if (observe_error) return fail(*observe_error);
    return part(scope);
}

HypervisorView FakeHypervisor::part(HypervisorScope const& scope) const {
    HypervisorView one = view_;
    if (says_when) one.observed_at = system_clock().now();
    if (scope) std::erase_if(one.vms, [&](auto const& entry) { return entry.first != *scope; });
    return one;
}

Result<Observed> FakeHypervisor::perform(HypervisorStep const& step, Deadline) {
    if (on_perform) on_perform(step);
    std::lock_guard const lock(mutex_);
    auto const call = steps_.size();
    if (keeps_steps) steps_.push_back(step);
    if (die_at && die_at->call == call) {
        (void)effect(step, die_at->point);
        throw CrashNow{call, die_at->point};
    }
    if (fail_at && fail_at->call == call) {
        VFMGR_CHECK(effect(step, fail_at->point));
        return hypervisor_refused("the fake was told to fail here", "see the test");
    }
    VFMGR_TRY(Observed done, effect(step, FaultPoint::after));
    // As libvirt's: an unplug alone is not read back.
    auto const vm = [](auto const& one) { return one.vm_uuid; };
    if (!std::holds_alternative<DetachHostdev>(step)) done.vm = part(std::visit(vm, step));
    return done;
}

Result<void> FakeHypervisor::settle(std::string const&, Deadline) {
    std::lock_guard const lock(mutex_);
    ++settled_;
    return {};
}

Result<Observed> FakeHypervisor::effect(HypervisorStep const& step, FaultPoint until) {
    if (until == FaultPoint::before) return Observed{};
    if (auto const* in = std::get_if<AttachHostdev>(&step)) return attach(*in, until);
    if (auto const* vsock = std::get_if<AddVsock>(&step)) return add_vsock(*vsock, until);
    if (auto const* places = std::get_if<PlaceHostdevs>(&step)) return place(*places);
    if (auto const* named = std::get_if<MarkHostdev>(&step))
        return until == FaultPoint::halfway ? Observed{} : mark(*named);
    return remove(std::get<DetachHostdev>(step), until);
}

Result<VmInfo*> FakeHypervisor::vm(std::string const& uuid) {
    auto const found = view_.vms.find(uuid);
    if (found != view_.vms.end()) return &found->second;
    return fail(Problem::not_found, fmt::format("libvirt knows no domain {}", uuid),
                "list the VMs: vfctl vm list");
}

Result<void> FakeHypervisor::usable(VmInfo const& vm, PciAddress const& pci) const {
    for (auto const& [uuid, other] : view_.vms)
        if (uuid != vm.uuid && find_hostdev(other.live, pci))
            return hypervisor_refused(
                fmt::format("PCI device {} is in use by domain {}", to_string(pci), other.name),
                "detach it there first");
    auto const host = kernel_.view();
    // Its <hostdev> is libvirt's own, which binds it (managed='yes').
    if (host.places &&
        std::ranges::find(host.places->gpus, pci, &PciPlace::address) != host.places->gpus.end())
        return {};
    // managed='no': libvirt binds nothing and refuses a device that is not on a stub driver.
    for (auto const& [address, pf] : host.pfs)
        for (auto const& vf : pf.vfs)
            if (vf.pci == pci && vf.driver == "vfio-pci") return {};
    return hypervisor_refused(
        fmt::format("PCI device {} must be manually detached from the host", to_string(pci)),
        "bind it to vfio-pci");
}

Result<void> FakeHypervisor::may_go_live(VmInfo const& vm, AttachHostdev const& step) const {
    if (vm.state != VmState::running && vm.state != VmState::paused)
        return hypervisor_refused(fmt::format("domain {} is not running", vm.name), "start it");
    if (vm.free_pcie_ports == 0)
        return hypervisor_refused("No more available PCI slots", "add a pcie-root-port");
    return usable(vm, step.pci);
}

Result<Observed> FakeHypervisor::attach(AttachHostdev const& step, FaultPoint until) {
    VFMGR_TRY(auto* const target, vm(step.vm_uuid));
    VmHostdev const device{step.pci, hostdev_alias(step.attachment)};
    auto const free = [&](std::vector<PciAddress> const& places) {
        return !step.guest_address ||
               std::ranges::find(places, *step.guest_address) != places.end();
    };
    if ((step.live && !free(target->free_live)) || (step.config && !free(target->free_config)))
        return hypervisor_refused("XML error: Attempted double use of PCI Address",
                                  "name another address");
    // Live first, then the config: a crash in between leaves live only
    // (vfmgr/hypervisor/LIBVIRT.md#attaching).
    if (step.live && !has(target->live, device)) {
        VFMGR_CHECK(may_go_live(*target, step));
        target->live.push_back(device);
        --target->free_pcie_ports;
        kernel_.hold(step.pci, qemu_of(*target));
    }
    if (!step.config || has(target->config, device)) return Observed{};
    if (step.live && until == FaultPoint::halfway) return Observed{};
    if (!target->persistent)
        return hypervisor_refused(fmt::format("domain {} is transient", target->name),
                                  "attach it live only");
    target->config.push_back(device);
    return Observed{};
}

// libvirt replaces all of the configuration, or nothing.
Result<Observed> FakeHypervisor::mark(MarkHostdev const& step) {
    VFMGR_TRY(auto* const target, vm(step.vm_uuid));
    auto& has_it = step.config ? target->config : target->live;
    auto const device = std::ranges::find(has_it, step.pci, &VmHostdev::pci);
    if (device == has_it.end())
        return hypervisor_refused(
            fmt::format("domain {} has no {}", target->name, to_string(step.pci)), "plug it in");
    if (!step.config) return Observed{};
    device->alias = step.alias;
    device->managed = step.managed;
    return Observed{};
}

void FakeHypervisor::bind_managed(VmHostdev const& device,
                                  std::optional<std::string> const& driver) {
    if (!device.managed) return;
    kernel_.change([&](KernelView& host) {
        for (auto& [address, pf] : host.pfs)
            for (auto& vf : pf.vfs)
                if (vf.pci == device.pci) {
                    vf.driver = driver;
                    vf.vfio.reset();
                }
    });
}

Result<Observed> FakeHypervisor::add_vsock(AddVsock const& step, FaultPoint until) {
    VFMGR_TRY(auto* const target, vm(step.vm_uuid));
    if (step.live && !target->vsock_cid) {
        if (target->state == VmState::shut_off)
            return hypervisor_refused(fmt::format("domain {} is not running", target->name),
                                      "start it");
        if (target->free_pcie_ports == 0)
            return hypervisor_refused("No more available PCI slots", "add a pcie-root-port");
        --target->free_pcie_ports;
        target->vsock_cid = 2 + static_cast<std::uint32_t>(target->start_id.value_or(1));
        target->has_vsock = target->has_vsock || !target->persistent;
    }
    if (!step.config || (step.live && until == FaultPoint::halfway)) return Observed{};
    target->has_vsock = true;
    return Observed{};
}

// One redefinition of the domain: all or nothing.
Result<Observed> FakeHypervisor::place(PlaceHostdevs const& step) {
    VFMGR_TRY(auto* const target, vm(step.vm_uuid));
    if (target->state != VmState::shut_off || !target->pcie)
        return hypervisor_refused(fmt::format("domain {} is running or has no PCIe", target->name),
                                  "shut it down");
    for (auto const& each : step.hostdevs)
        if (!find_hostdev(target->config, each.pci))
            return hypervisor_refused(
                fmt::format("domain {} has no {}", target->name, to_string(each.pci)),
                "attach it first");
    VFMGR_TRY(auto const places, guest_places(*target->pcie, target->name, step.hostdevs));
    for (auto const& former : target->pcie->placed)
        if (auto const now = std::ranges::find(target->config, former.pci, &VmHostdev::pci);
            now != target->config.end())
            now->in_guest.reset();
    for (auto const& each : places.hostdevs)
        std::ranges::find(target->config, each.pci, &VmHostdev::pci)->in_guest = each.in_guest;
    target->pcie->placed = step.hostdevs;
    return Observed{};
}

Result<Observed> FakeHypervisor::remove(DetachHostdev const& step, FaultPoint until) {
    VFMGR_TRY(auto* const target, vm(step.vm_uuid));
    VmHostdev const device{step.pci, hostdev_alias(step.attachment)};
    auto const plugged = std::ranges::find_if(target->live, [&](VmHostdev const& one) {
        return one == device || (step.by_address && one.pci == step.pci);
    });
    if (step.live && plugged != target->live.end()) {
        if (detach == DetachBehaviour::times_out) {
            if (step.config && until != FaultPoint::halfway) std::erase(target->config, device);
            return fail(
                Problem::timed_out,
                fmt::format("VM {} did not let go of {}", target->name, to_string(step.pci)),
                "shut the VM down, or detach again when its system answers");
        }
        if (detach == DetachBehaviour::works) {
            auto const gone = *plugged;
            target->live.erase(plugged);
            ++target->free_pcie_ports;
            kernel_.release(step.pci, qemu_of(*target).pid);
            bind_managed(gone, "igbvf");
        }
    }
    if (step.config && !(step.live && until == FaultPoint::halfway))
        std::erase(target->config, device);
    return Observed{};
}

HypervisorView FakeHypervisor::view() const {
    std::lock_guard const lock(mutex_);
    return view_;
}

void FakeHypervisor::change(std::function<void(HypervisorView&)> const& edit) {
    std::lock_guard const lock(mutex_);
    edit(view_);
}

void FakeHypervisor::add(VmInfo vm) {
    std::lock_guard const lock(mutex_);
    next_start_id_ = std::max(next_start_id_, vm.start_id.value_or(0) + 1);
    auto const uuid = vm.uuid;
    view_.vms.insert_or_assign(uuid, std::move(vm));
}

Result<void> FakeHypervisor::start(std::string const& uuid) {
    std::lock_guard const lock(mutex_);
    VFMGR_TRY(auto* const target, vm(uuid));
    if (target->state == VmState::running) return {};
    for (auto const& device : target->config) {
        bind_managed(device, "vfio-pci");
        VFMGR_CHECK(usable(*target, device.pci));
    }
    target->state = VmState::running;
    target->start_id = next_start_id_++;
    if (target->has_vsock) target->vsock_cid = 2 + static_cast<std::uint32_t>(*target->start_id);
    target->live = target->config;
    for (auto const& device : target->live) kernel_.hold(device.pci, qemu_of(*target));
    return {};
}

void FakeHypervisor::stop(std::string const& uuid) {
    std::lock_guard const lock(mutex_);
    auto const target = vm(uuid);
    if (!target) return;
    for (auto const& device : (*target)->live) {
        kernel_.release(device.pci, qemu_of(**target).pid);
        bind_managed(device, "igbvf");
    }
    // Only a device hot-plugged live frees its port; the config's devices keep theirs.
    for (auto const& device : (*target)->live)
        if (!has((*target)->config, device)) ++(*target)->free_pcie_ports;
    (*target)->live.clear();
    (*target)->state = VmState::shut_off;
    (*target)->start_id.reset();
    (*target)->vsock_cid.reset();
}

std::size_t FakeHypervisor::performed() const {
    std::lock_guard const lock(mutex_);
    return steps_.size();
}

std::vector<HypervisorStep> FakeHypervisor::steps() const {
    std::lock_guard const lock(mutex_);
    return steps_;
}

std::size_t FakeHypervisor::settled() const {
    std::lock_guard const lock(mutex_);
    return settled_;
}

std::size_t FakeHypervisor::observed() const {
    std::lock_guard const lock(mutex_);
    return observed_;
}

}  // namespace vfmgr
