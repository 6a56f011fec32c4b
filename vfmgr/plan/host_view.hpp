// SPDX-License-Identifier: Apache-2.0
// The host's network devices, as far as software RDMA links and the choice of MACs need them, and
// all RDMA devices: a part of HostView. Values; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/pf_state.hpp"
#include "api/types/rdma.hpp"
#include "api/types/time.hpp"
#include "api/types/topology.hpp"
#include "api/types/vm_info.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {

struct NetdevState {
    bool ethernet = false;
    bool loopback = false;
    bool up = false;                        // administratively
    std::optional<std::string> controller;  // the bond or bridge that it is part of
    std::optional<std::string> parent;      // of a VLAN device; "" when in another namespace
    std::optional<PciAddress> pci;          // of the function it belongs to
    std::optional<MacAddress> mac{};        // of an Ethernet device
    bool operator==(NetdevState const&) const = default;
};

struct HostNetworkView {
    std::map<std::string, NetdevState> netdevs;
    std::map<std::string, ObservedRdmaLink> rdma;  // hardware ones, too: their names are taken
    // Whether the kernel has the module or can load it; absent: this process can't find out.
    std::optional<bool> rxe_module;
    std::optional<bool> siw_module;
    bool stale = false;  // not readable now; the rest is from observed_at
    std::string stale_reason;
    Time observed_at{};
    bool operator==(HostNetworkView const&) const = default;
};

extern template struct Json<HostNetworkView>;

// The observed state of the host: an immutable snapshot of kernel and hypervisor, read by the
// planner and by every GET. Shared as std::shared_ptr<HostView const>; any thread.

// A route of the host. A network of ours must never cover a route of another owner.
struct HostRoute {
    IpPrefix prefix;
    std::string ifname;
    bool operator==(HostRoute const&) const = default;
};

// Where GPUs and PFs are on the host's PCI tree, and which switches' ports keep them apart. Up to a
// minute older than the rest of the view: cards seldom move.
struct HostPlaces {
    std::vector<PciPlace> gpus;  // display controllers of any vendor, by address
    std::vector<PciPlace> pfs;   // by address; none on a host without GPUs
    // Downstream ports of switches, above any of those: ACS sends a request from below them to the
    // root complex first, even if it is for a device of the same switch.
    std::vector<PciAddress> redirecting;
    std::vector<PciAddress> unread;  // the same ports, where ACS could not be read
    bool operator==(HostPlaces const&) const = default;
};

struct KernelView {
    std::map<PciAddress, PfState> pfs;
    std::vector<HostRoute> routes;             // main table, without default routes
    std::optional<HostNetworkView> network{};  // absent: not observed
    std::optional<HostPlaces> places{};        // absent: not observed
    bool complete = false;  // all of the host was observed: a PF that is not listed does not exist
    bool operator==(KernelView const&) const = default;
};

struct HypervisorView {
    std::map<std::string, VmInfo> vms;  // by UUID
    bool vfio_variants = false;         // this libvirt accepts VFs bound to a variant of vfio-pci
    bool stale = false;                 // libvirt could not be queried: a VF in use stays in use
    std::string stale_reason;
    Time observed_at{};
    bool operator==(HypervisorView const&) const = default;
};

struct HostView {
    KernelView kernel;
    HypervisorView hypervisor;
    bool operator==(HostView const&) const = default;
};

[[nodiscard]] PfState const* find_pf(HostView const& view, PciAddress const& pf);
[[nodiscard]] VfState const* find_vf(HostView const& view, VfId const& vf);
[[nodiscard]] HostInterface const* find_interface(PfState const& pf, InterfaceId const& interface);
[[nodiscard]] HostInterface const* find_interface(HostView const& view,
                                                  InterfaceId const& interface);
// Finds by UUID, then by name. Names are unique in libvirt.
[[nodiscard]] VmInfo const* find_vm(HostView const& view, std::string_view name_or_uuid);
// The running VM with this CID; an error when there is none, or more than one.
[[nodiscard]] Result<VmIdentity> vm_with_cid(HypervisorView const& view, std::uint32_t cid);
// Whether it has a live XML; a paused one has.
[[nodiscard]] bool is_running(VmInfo const& vm);
// True when the running VM or its persistent XML has that PCI device.
[[nodiscard]] bool names(VmInfo const& vm, PciAddress const& pci);
// True when the attachment's device, or that VF under any name, is present.
[[nodiscard]] bool has_hostdev(std::vector<VmHostdev> const& hostdevs, std::string const& alias,
                               PciAddress const& pci);

extern template struct Json<HostRoute>;
extern template struct Json<HostPlaces>;
// {"pfs": […], "routes": […], "network": …, "places": …}
template <>
void Json<KernelView>::write(nlohmann::json& out, KernelView const& view);
template <>
void Json<KernelView>::read(JsonReader& reader, KernelView& view);

// Returns the parts of the view that a plan starts from, or the refusal when they are missing or
// stale. Pure.

// Points into `host`.
[[nodiscard]] Result<PfState const*> readable_pf(HostView const& host, PciAddress const& pf);
[[nodiscard]] Result<VmInfo const*> readable_vm(HostView const& host,
                                                std::string_view name_or_uuid);

// Checks that libvirt could be queried.
[[nodiscard]] Result<void> require_libvirt(HostView const& host);
// The same, where the question is which VFs of this device VMs use.
[[nodiscard]] Result<void> require_users(HostView const& host, std::string_view device);
// Checks that VFs can be made and removed now: no other PF blocks it.
[[nodiscard]] Result<void> require_free_pci(HostView const& host);
// Checks that so many more devices can be plugged into the running VM.
[[nodiscard]] Result<void> require_free_ports(VmInfo const& vm, std::uint32_t count);

}  // namespace vfmgr
