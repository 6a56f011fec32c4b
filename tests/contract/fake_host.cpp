// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/fake_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "api/types/json.hpp"
#include "tests/fakes/verbs/fabric.hpp"

namespace vfmgr {
namespace {

enum class Service { down, up };

}  // namespace

namespace fakes {
namespace {

struct HostPf {
    std::string model;
    PciAddress pci;
    std::string ifname;
    std::uint16_t total_vfs = 7;
    std::optional<std::string> rdma_device;
};
template <class F, Of<HostPf> V>
void fields(F& f, V& pf) {
    f.value("model", pf.model);
    f.value("pci", pf.pci);
    f.value("ifname", pf.ifname);
    f.defaulted("total_vfs", pf.total_vfs);
    f.maybe("rdma_device", pf.rdma_device);
}
void check(JsonReader& reader, HostPf const& pf) {
    if (std::ranges::find(driver_models(), pf.model, &DriverModel::name) == driver_models().end())
        reader.complain("model", "is none of the fakes'");
}

struct HostVm {
    std::string name;
    std::string uuid;
    bool runs = true;
    bool vsock = true;
    std::uint32_t free_pcie_ports = 2;
    std::vector<VmInterface> interfaces;
    std::vector<DeclaredVfs> declared;
    std::vector<PciAddress> gpus;
    std::optional<GuestPcie> pcie;
};
template <class F, Of<HostVm> V>
void fields(F& f, V& vm) {
    f.value("name", vm.name);
    f.value("uuid", vm.uuid);
    f.defaulted("runs", vm.runs);
    f.defaulted("vsock", vm.vsock);
    f.defaulted("free_pcie_ports", vm.free_pcie_ports);
    f.defaulted("interfaces", vm.interfaces);
    f.defaulted("declared", vm.declared);
    f.defaulted("gpus", vm.gpus);
    f.maybe("pcie", vm.pcie);
}

struct HostDocument {
    std::vector<HostPf> pfs;
    std::vector<HostVm> vms;
    std::vector<FirmwareCard> firmware;
    HostNetworkView network;
    HostPlaces places;
    std::vector<IpAddress> gids;
    std::uint32_t step_milliseconds = 0;
};
template <class F, Of<HostDocument> V>
void fields(F& f, V& host) {
    f.defaulted("pfs", host.pfs);
    f.defaulted("vms", host.vms);
    f.defaulted("firmware", host.firmware);
    f.defaulted("network", host.network);
    f.defaulted("places", host.places);
    f.defaulted("gids", host.gids);
    f.defaulted("step_milliseconds", host.step_milliseconds);
}

struct Holding {
    PciAddress pci;
    std::int32_t pid = 0;
    std::string comm;
};
template <class F, Of<Holding> V>
void fields(F& f, V& holding) {
    f.value("pci", holding.pci);
    f.value("pid", holding.pid);
    f.defaulted("comm", holding.comm);
}

struct Hanging {
    PciAddress pf;
    std::string why;
};
template <class F, Of<Hanging> V>
void fields(F& f, V& hanging) {
    f.value("pf", hanging.pf);
    f.value("why", hanging.why);
}

struct Moving {
    PciAddress pf;
    PciAddress to;
    std::optional<std::uint16_t> total_vfs;
};
template <class F, Of<Moving> V>
void fields(F& f, V& moving) {
    f.value("pf", moving.pf);
    f.value("to", moving.to);
    f.maybe("total_vfs", moving.total_vfs);
}

struct Counted {
    PciAddress pf;
    std::uint16_t index = 0;
    VfCounters counters;
};
template <class F, Of<Counted> V>
void fields(F& f, V& counted) {
    f.value("pf", counted.pf);
    f.value("index", counted.index);
    f.value("counters", counted.counters);
}

struct RdmaCounted {
    PciAddress pf;
    std::map<std::string, std::uint64_t> counters;
};
template <class F, Of<RdmaCounted> V>
void fields(F& f, V& counted) {
    f.value("pf", counted.pf);
    f.value("counters", counted.counters);
}

struct ChangedPf {
    PciAddress pf;
    std::optional<bool> stale, carrier;
};
template <class F, Of<ChangedPf> V>
void fields(F& f, V& changed) {
    f.value("pf", changed.pf);
    f.maybe("stale", changed.stale);
    f.maybe("carrier", changed.carrier);
}

struct ChangedVf {
    PciAddress pf;
    std::uint16_t index = 0;
    VfSpec settings;
};
template <class F, Of<ChangedVf> V>
void fields(F& f, V& changed) {
    f.value("pf", changed.pf);
    f.value("index", changed.index);
    f.value("settings", changed.settings);
}

struct Happening {
    std::optional<std::string> start_vm, stop_vm, refuse_step;
    std::optional<Service> libvirt, guestd;
    std::optional<Holding> hold, release;
    std::optional<Hanging> stuck;
    std::optional<Counted> traffic;
    std::optional<RdmaCounted> rdma;
    std::optional<ChangedPf> change_pf;
    std::optional<ChangedVf> change_vf;
    std::optional<PciAddress> unstick, take_out;
    std::optional<Moving> put_in;
    std::optional<DetachBehaviour> detach;
    std::optional<Peers> peers;
    std::optional<std::uint32_t> step_milliseconds;
};
template <class F, Of<Happening> V>
void fields(F& f, V& happening) {
    f.maybe("start_vm", happening.start_vm);
    f.maybe("stop_vm", happening.stop_vm);
    f.maybe("refuse_step", happening.refuse_step);
    f.maybe("libvirt", happening.libvirt);
    f.maybe("guestd", happening.guestd);
    f.maybe("hold", happening.hold);
    f.maybe("release", happening.release);
    f.maybe("stuck", happening.stuck);
    f.maybe("traffic", happening.traffic);
    f.maybe("rdma", happening.rdma);
    f.maybe("change_pf", happening.change_pf);
    f.maybe("change_vf", happening.change_vf);
    f.maybe("unstick", happening.unstick);
    f.maybe("take_out", happening.take_out);
    f.maybe("put_in", happening.put_in);
    f.maybe("detach", happening.detach);
    f.maybe("peers", happening.peers);
    f.maybe("step_milliseconds", happening.step_milliseconds);
}

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
    step_time_ = std::chrono::milliseconds(host.step_milliseconds);
    for (auto const& one : host.vms) {
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
        if (one.runs) VFMGR_CHECK(hypervisor_.start(one.uuid));
    }
    return {};
}

Result<void> FakeHost::happen(std::string_view line) {
    VFMGR_TRY(auto const what, from_json_text<Happening>(line));
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
    std::lock_guard const lock(mutex_);
    if (what.detach) hypervisor_.detach = *what.detach;
    if (what.peers) peers_ = *what.peers;
    if (what.refuse_step) refused_step_ = *what.refuse_step;
    if (what.step_milliseconds) step_time_ = std::chrono::milliseconds(*what.step_milliseconds);
    quick_.notify_all();
    return {};
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
    return host_.kernel_.perform(step, deadline);
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
    return host_.hypervisor_.perform(step, deadline);
}

Result<void> FakeHost::TimedHypervisor::settle(std::string const& vm_uuid, Deadline deadline) {
    return host_.hypervisor_.settle(vm_uuid, deadline);
}

}  // namespace fakes
}  // namespace vfmgr
