// SPDX-License-Identifier: Apache-2.0
// The JSON that fake_host.hpp describes: the host's document, and the changes that happen to it.
#pragma once

#include <algorithm>

#include "api/types/json.hpp"
#include "tests/contract/fake_host.hpp"

namespace vfmgr {

enum class Service { down, up };

namespace fakes {

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
inline void check(JsonReader& reader, HostPf const& pf) {
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
    std::optional<Verification> verdict;
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
    f.maybe("verdict", host.verdict);
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
    std::optional<HostVm> define_vm;
    std::optional<std::string> undefine_vm, start_vm, stop_vm, refuse_step;
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
    std::optional<Verification> verdict;
    std::optional<std::uint32_t> step_milliseconds;
};
template <class F, Of<Happening> V>
void fields(F& f, V& happening) {
    f.maybe("define_vm", happening.define_vm);
    f.maybe("undefine_vm", happening.undefine_vm);
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
    f.maybe("verdict", happening.verdict);
    f.maybe("step_milliseconds", happening.step_milliseconds);
}

}  // namespace fakes
}  // namespace vfmgr
