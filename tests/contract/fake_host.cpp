// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/fake_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tests/contract/host_document.hpp"
#include "tests/fakes/verbs/fabric.hpp"

namespace vfmgr {
namespace fakes {
namespace {

void set_stuck(FakeKernel& kernel, PciAddress const& pf, std::optional<std::string> const& why) {
    kernel.change([&](KernelView& view) {
        if (auto const found = view.pfs.find(pf); found != view.pfs.end())
            found->second.stuck = why;
    });
}

void change(FakeKernel& kernel, ChangedPf const& changed) {
    kernel.change([&](KernelView& view) {
        auto& pf = view.pfs.at(changed.pf);
        pf.stale = changed.stale.value_or(pf.stale);
        if (pf.stale) pf.stale_reason = "the test says that it can't be read";
        pf.info.carrier = changed.carrier.value_or(pf.info.carrier);
    });
}

// As another program does it.
void change(FakeKernel& kernel, ChangedVf const& changed) {
    kernel.change([&](KernelView& view) {
        auto& vfs = view.pfs.at(changed.pf).vfs;
        auto const vf = std::ranges::find(vfs, changed.index, &VfState::index);
        if (vf != vfs.end()) vf->settings = overlay(vf->settings, changed.settings);
    });
}

void take_out(FakeKernel& kernel, PciAddress const& pf) {
    kernel.change([&](KernelView& view) { view.pfs.erase(pf); });
}

// As after a boot: without VFs, with the MAC or GUID that the card had before.
void put_in(FakeKernel& kernel, DriverModel const& model, PfState const& card,
            Moving const& moving) {
    auto pf = make_pf(model, to_string(moving.to), card.info.ifname);
    pf.info.total_vfs = moving.total_vfs.value_or(card.info.total_vfs);
    pf.info.identity = card.info.identity;
    kernel.change([&](KernelView& view) { view.pfs.insert_or_assign(moving.to, std::move(pf)); });
}

}  // namespace

Result<void> FakeHost::load(nlohmann::json const& document) {
    VFMGR_TRY(auto const host, from_json_document<HostDocument>(document));
    for (auto const& one : host.pfs) {
        auto const& model = driver_model(one.model);
        auto pf = make_pf(model, to_string(one.pci), one.ifname);
        pf.info.total_vfs = one.total_vfs;
        pf.info.rdma_device = one.rdma_device;
        kernel_.models[one.pci] = model;
        kernel_.change([&](KernelView& view) { view.pfs.insert_or_assign(one.pci, pf); });
    }
    cards_ = kernel_.view().pfs;
    kernel_.change([&](KernelView& view) {
        view.network = host.network;
        view.places = host.places;
    });
    kernel_.change_firmware([&](std::vector<FirmwareCard>& cards) { cards = host.firmware; });
    std::vector<std::array<std::uint8_t, 16>> gids;
    for (auto const& address : host.gids) gids.push_back(address.gid());
    plug_in(gids);
    verdict_ = host.verdict;
    step_time_ = std::chrono::milliseconds(host.step_milliseconds);
    for (auto const& one : host.vms) VFMGR_CHECK(define(one));
    return {};
}

Result<void> FakeHost::define(HostVm const& one) {
    auto vm = make_vm(one.name, one.uuid);
    vm.has_vsock = one.vsock;
    vm.free_pcie_ports = one.free_pcie_ports;
    vm.interfaces = one.interfaces;
    vm.declared = one.declared;
    vm.pcie = one.pcie;
    for (auto const& gpu : one.gpus) vm.config.push_back({gpu, std::nullopt});
    vm.state = VmState::shut_off;
    vm.start_id.reset();
    vm.vsock_cid.reset();
    hypervisor_.add(std::move(vm));
    return one.runs ? hypervisor_.start(one.uuid) : Result<void>{};
}

Result<void> FakeHost::happen(std::string_view line) {
    VFMGR_TRY(auto const what, from_json_text<Happening>(line));
    if (what.define_vm) VFMGR_CHECK(define(*what.define_vm));
    if (what.undefine_vm)
        hypervisor_.change([&](HypervisorView& view) { view.vms.erase(*what.undefine_vm); });
    if (what.start_vm) VFMGR_CHECK(hypervisor_.start(*what.start_vm));
    if (what.stop_vm) hypervisor_.stop(*what.stop_vm);
    if (what.hold) kernel_.hold(what.hold->pci, {what.hold->pid, what.hold->comm});
    if (what.release) kernel_.release(what.release->pci, what.release->pid);
    if (what.traffic)
        kernel_.count({what.traffic->pf, what.traffic->index}, what.traffic->counters);
    if (what.change_pf) change(kernel_, *what.change_pf);
    if (what.change_vf) change(kernel_, *what.change_vf);
    if (what.rdma) kernel_.count(what.rdma->pf, what.rdma->counters);
    if (what.stuck) set_stuck(kernel_, what.stuck->pf, what.stuck->why);
    if (what.unstick) set_stuck(kernel_, *what.unstick, {});
    if (what.take_out) take_out(kernel_, *what.take_out);
    if (what.put_in)
        put_in(kernel_, kernel_.models.at(what.put_in->pf), cards_.at(what.put_in->pf),
               *what.put_in);
    if (what.libvirt) libvirt_down_ = *what.libvirt == Service::down;
    if (what.guestd) {
        guestd_down_ = *what.guestd == Service::down;
        if (guestd_down_ && on_guestd_down_) on_guestd_down_();
    }
    kept_.note();
    std::lock_guard const lock(mutex_);
    if (what.detach) hypervisor_.detach = *what.detach;
    if (what.peers) peers_ = *what.peers;
    if (what.verdict) verdict_ = what.verdict;
    if (what.refuse_step) refused_step_ = *what.refuse_step;
    if (what.step_milliseconds) step_time_ = std::chrono::milliseconds(*what.step_milliseconds);
    quick_.notify_all();
    return {};
}

std::optional<Verification> FakeHost::verdict() {
    std::lock_guard const lock(mutex_);
    return verdict_;
}

Result<void> FakeHost::check_peer() {
    std::unique_lock lock(mutex_);
    quick_.wait(lock, [this] { return peers_ != Peers::hanging; });
    auto const put_it_right = "let the test put it right";
    switch (peers_) {
        case Peers::wrong:
            return fail(Problem::conflict, "the test says that somebody else has the address",
                        put_it_right);
        case Peers::silent:
            return fail(Problem::unavailable, "the test says that nobody answers", put_it_right);
        case Peers::refused:
            return fail(Problem::kernel_refused, "the test says that the kernel refuses",
                        put_it_right);
        case Peers::broken:
            throw std::runtime_error("the test says that a bug throws");
        case Peers::right:
        case Peers::hanging:
            break;
    }
    return {};
}

Result<KernelView> FakeHost::TimedKernel::observe(KernelScope const& scope) {
    auto const now = system_clock().now();
    VFMGR_TRY(auto view, host_.kernel_.observe(scope));
    for (auto& [pci, pf] : view.pfs) pf.observed_at = now;
    if (view.network) view.network->observed_at = now;
    return view;
}

Result<Observed> FakeHost::TimedKernel::perform(KernelStep const& step, Deadline deadline) {
    auto const name = nlohmann::json(Step{step}).at("step").get<std::string>();
    {
        std::unique_lock lock(host_.mutex_);
        host_.quick_.wait_for(lock, host_.step_time_,
                              [this] { return host_.step_time_.count() == 0; });
        if (name == host_.refused_step_)
            return fail(Problem::kernel_refused, fmt::format("the test refuses {}", name),
                        "let the test take it");
    }
    auto done = host_.kernel_.perform(step, deadline);
    host_.kept_.note();
    return done;
}

Result<std::vector<FirmwareCard>> FakeHost::TimedKernel::read_firmware(
    std::optional<PciAddress> const& function) {
    {
        std::lock_guard const lock(host_.mutex_);
        if (host_.refused_step_ == "read_firmware")
            return fail(Problem::kernel_refused, "the test refuses to read firmware",
                        "let the test take it");
    }
    return host_.kernel_.read_firmware(function);
}

Result<std::vector<PfTraffic>> FakeHost::TimedKernel::read_traffic(
    std::optional<PciAddress> const& pf) {
    auto const now = system_clock().now();
    VFMGR_TRY(auto all, host_.kernel_.read_traffic(pf));
    for (auto& traffic : all) traffic.read_at = now;
    return all;
}

Result<HypervisorView> FakeHost::TimedHypervisor::observe(HypervisorScope const& scope) {
    auto const now = system_clock().now();
    if (host_.libvirt_down_)
        return fail(Problem::unavailable, "libvirt does not answer: the test stopped it",
                    "let the test start it");
    VFMGR_TRY(auto view, host_.hypervisor_.observe(scope));
    view.observed_at = now;
    return view;
}

Result<Observed> FakeHost::TimedHypervisor::perform(HypervisorStep const& step, Deadline deadline) {
    std::lock_guard const lock(host_.mutex_);
    auto done = host_.hypervisor_.perform(step, deadline);
    host_.kept_.note();
    return done;
}

Result<void> FakeHost::TimedHypervisor::settle(std::string const& vm_uuid, Deadline deadline) {
    return host_.hypervisor_.settle(vm_uuid, deadline);
}

}  // namespace fakes
}  // namespace vfmgr
