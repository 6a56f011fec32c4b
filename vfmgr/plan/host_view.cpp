// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/host_view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

#include "api/types/json.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

template <class F, Of<NetdevState> V>
void fields(F& f, V& netdev) {
    f.value("ethernet", netdev.ethernet);
    f.value("loopback", netdev.loopback);
    f.value("up", netdev.up);
    f.nullable("controller", netdev.controller);
    f.nullable("parent", netdev.parent);
    f.nullable("pci", netdev.pci);
    f.nullable("mac", netdev.mac);
}

template <class F, Of<HostNetworkView> V>
void fields(F& f, V& network) {
    f.value("netdevs", network.netdevs);
    f.value("rdma", network.rdma);
    f.nullable("rxe_module", network.rxe_module);
    f.nullable("siw_module", network.siw_module);
    f.value("stale", network.stale);
    f.value("stale_reason", network.stale_reason);
    f.value("observed_at", network.observed_at);
}

template struct Json<HostNetworkView>;

namespace {
constexpr char const* libvirt_remedy =
    "check that libvirt runs: systemctl status libvirtd virtqemud";
}

PfState const* find_pf(HostView const& view, PciAddress const& pf) {
    auto const found = view.kernel.pfs.find(pf);
    return found == view.kernel.pfs.end() ? nullptr : &found->second;
}

VfState const* find_vf(HostView const& view, VfId const& vf) {
    auto const* pf = find_pf(view, vf.pf);
    if (pf == nullptr) return nullptr;
    // The VF with number n is usually element n.
    if (vf.index < pf->vfs.size() && pf->vfs[vf.index].index == vf.index) return &pf->vfs[vf.index];
    auto const found = std::ranges::find(pf->vfs, vf.index, &VfState::index);
    return found == pf->vfs.end() ? nullptr : &*found;
}

HostInterface const* find_interface(PfState const& pf, InterfaceId const& interface) {
    auto const found = std::ranges::find(pf.interfaces, interface, &HostInterface::id);
    return found == pf.interfaces.end() ? nullptr : &*found;
}

HostInterface const* find_interface(HostView const& view, InterfaceId const& interface) {
    auto const* pf = find_pf(view, interface.pf);
    return pf == nullptr ? nullptr : find_interface(*pf, interface);
}

VmInfo const* find_vm(HostView const& view, std::string_view name_or_uuid) {
    auto const& vms = view.hypervisor.vms;
    if (auto const by_uuid = vms.find(std::string(name_or_uuid)); by_uuid != vms.end())
        return &by_uuid->second;
    for (auto const& [uuid, vm] : vms)
        if (vm.name == name_or_uuid) return &vm;
    return nullptr;
}

Result<VmIdentity> vm_with_cid(HypervisorView const& view, std::uint32_t cid) {
    if (view.stale)
        return fail(
            Problem::unavailable,
            fmt::format("it is not known which VM has vsock CID {}: {}", cid, view.stale_reason),
            libvirt_remedy);
    std::optional<VmIdentity> found;
    for (auto const& [uuid, vm] : view.vms) {
        if (vm.vsock_cid != cid || !vm.start_id) continue;
        if (found)
            return fail(
                Problem::conflict,
                fmt::format("VMs {} and {} both have vsock CID {}", found->name, vm.name, cid),
                "let libvirt choose the CIDs: <cid auto='yes'/>");
        found = VmIdentity{vm.uuid, vm.name, *vm.start_id};
    }
    if (!found)
        return fail(Problem::not_found, fmt::format("no running VM has vsock CID {}", cid),
                    "list the running VMs: virsh list; a VM needs <vsock model='virtio'>");
    return *found;
}

bool is_running(VmInfo const& vm) {
    return vm.state == VmState::running || vm.state == VmState::paused;
}

bool names(VmInfo const& vm, PciAddress const& pci) {
    auto const is_it = [&](VmHostdev const& hostdev) { return hostdev.pci == pci; };
    return std::ranges::any_of(vm.live, is_it) || std::ranges::any_of(vm.config, is_it);
}

bool has_hostdev(std::vector<VmHostdev> const& hostdevs, std::string const& alias,
                 PciAddress const& pci) {
    return std::ranges::any_of(hostdevs, [&](VmHostdev const& hostdev) {
        return hostdev.alias == alias || hostdev.pci == pci;
    });
}

template <class F, Of<HostRoute> V>
void fields(F& f, V& route) {
    f.value("prefix", route.prefix);
    f.value("ifname", route.ifname);
}

template <class F, Of<HostPlaces> V>
void fields(F& f, V& places) {
    f.value("gpus", places.gpus);
    f.value("pfs", places.pfs);
    f.value("redirecting", places.redirecting);
    f.value("unread", places.unread);
}

template <>
void Json<KernelView>::write(nlohmann::json& out, KernelView const& view) {
    JsonWriter writer(out);
    std::vector<PfState> pfs;
    for (auto const& [pci, pf] : view.pfs) pfs.push_back(pf);
    writer.value("pfs", pfs);
    writer.value("routes", view.routes);
    writer.maybe("network", view.network);
    writer.maybe("places", view.places);
}

template <>
void Json<KernelView>::read(JsonReader& reader, KernelView& view) {
    std::vector<PfState> pfs;
    reader.value("pfs", pfs);
    reader.value("routes", view.routes);
    reader.maybe("network", view.network);
    reader.maybe("places", view.places);
    for (auto& pf : pfs) view.pfs.insert_or_assign(pf.info.pci, std::move(pf));
}

template struct Json<HostRoute>;
template struct Json<HostPlaces>;

Result<PfState const*> readable_pf(HostView const& host, PciAddress const& pf) {
    auto const* state = find_pf(host, pf);
    if (!state) {
        std::vector<std::string> known;
        for (auto const& [address, other] : host.kernel.pfs)
            known.push_back(fmt::format("{} ({})", to_string(address), other.info.ifname));
        return fail(Problem::not_found,
                    fmt::format("there is no SR-IOV capable device at {}", to_string(pf)),
                    known.empty() ? "this host has none; enable SR-IOV in the card's firmware"
                                  : fmt::format("use one of: {}", fmt::join(known, ", ")));
    }
    if (state->stuck)
        return fail(Problem::pf_stuck, fmt::format("{} is stuck: {}", to_string(pf), *state->stuck),
                    "end the processes that hold its VFs, or reboot the host; VFs of other PFs can "
                    "be attached");
    if (state->stale)
        return fail(Problem::unavailable,
                    fmt::format("{} can't be read: {}", to_string(pf), state->stale_reason),
                    "try again when the kernel answers for this device");
    return state;
}

Result<void> require_libvirt(HostView const& host) {
    if (!host.hypervisor.stale) return {};
    return fail(Problem::unavailable,
                fmt::format("libvirt can't be queried: {}", host.hypervisor.stale_reason),
                libvirt_remedy);
}

Result<void> require_users(HostView const& host, std::string_view device) {
    if (!host.hypervisor.stale) return {};
    return fail(Problem::unavailable,
                fmt::format("libvirt can't report which VFs of {} are in use: {}", device,
                            host.hypervisor.stale_reason),
                libvirt_remedy);
}

Result<VmInfo const*> readable_vm(HostView const& host, std::string_view name_or_uuid) {
    VFMGR_CHECK(require_libvirt(host));
    if (auto const* vm = find_vm(host, name_or_uuid)) return vm;
    return fail(Problem::not_found, fmt::format("libvirt knows no VM {}", name_or_uuid),
                "virsh list --all shows the VMs of this host");
}

// The kernel creates and removes VFs of one PF at a time: a task that hangs in it blocks all others
// (vfmgr/kernel/KERNEL.md#locks).
Result<void> require_free_pci(HostView const& host) {
    for (auto const& [pci, pf] : host.kernel.pfs)
        if (pf.pci_busy)
            return fail(
                Problem::pci_busy,
                fmt::format("no VFs can be created or removed on this host: {} is stuck: {}",
                            to_string(pci), pf.stuck.value_or("")),
                "end the processes that hold the VFs of that PF, or reboot the host; existing VFs "
                "can "
                "be attached");
    return {};
}

Result<void> require_free_ports(VmInfo const& vm, std::uint32_t count) {
    if (vm.free_pcie_ports >= count) return {};
    auto const lacks =
        vm.free_pcie_ports == 0
            ? fmt::format("VM {} has no free PCIe port", vm.name)
            : fmt::format("VM {} has {} free PCIe port{} of the {} needed", vm.name,
                          vm.free_pcie_ports, vm.free_pcie_ports == 1 ? "" : "s", count);
    return fail(
        discreetly({Problem::unsupported, lacks + " to plug a device into while it runs",
                    fmt::format("add <controller type='pci' model='pcie-root-port'/> to its XML "
                                "(virsh edit {}), shut it down and start it again; or attach with "
                                "add_ports: the VM then has the VF from its next start",
                                vm.name)}));
}

// Collects all uses of VFs, none of which is ever ignored: our attachments, libvirt's live and
// persistent XML of every domain, and processes that hold the VF's VFIO group. The kernel protects
// nothing (vfmgr/kernel/KERNEL.md#vfs-in-use).

namespace {

struct VmUse {
    VmInfo const* vm;
    bool live;
};

// Indexed by VF: each observation queries every VF of the host.
struct Users {
    std::multimap<VfId, Attachment const*> attachments;
    std::multimap<PciAddress, VmUse> vms;
};

Users users_of(HostView const& host, DesiredState const& desired, PciAddress const& pf) {
    Users users;
    for (auto const& [id, attachment] : desired.attachments)
        if (attachment.vf.pf == pf) users.attachments.emplace(attachment.vf, &attachment);
    for (auto const& [uuid, vm] : host.hypervisor.vms) {
        for (auto const& hostdev : vm.live) users.vms.emplace(hostdev.pci, VmUse{&vm, true});
        for (auto const& hostdev : vm.config) users.vms.emplace(hostdev.pci, VmUse{&vm, false});
    }
    return users;
}

template <class Map>
auto found_in(Map const& map, typename Map::key_type const& key) {
    auto const [first, last] = map.equal_range(key);
    return std::ranges::subrange(first, last);
}

void uses_of(std::vector<VfUse>& uses, Users const& users, DesiredState const& desired,
             VfId const& id, VfState const& vf) {
    for (auto const& [_, attachment] : found_in(users.attachments, id))
        uses.push_back(
            {id, fmt::format("attached to {} (attachment {})", attachment->vm, attachment->id)});
    for (auto const& [_, use] : found_in(users.vms, vf.pci)) {
        if (use.live)
            uses.push_back({id, fmt::format("in the running VM {}", use.vm->name)});
        else
            uses.push_back({id,
                            fmt::format("in the persistent configuration of VM {}", use.vm->name),
                            use.vm->uuid});
    }
    for (auto const& holder : vf.holders)
        uses.push_back({id, fmt::format("held open by {} (pid {})", holder.comm, holder.pid)});
    if (auto it = desired.quarantine.find(id); it != desired.quarantine.end())
        uses.push_back({id, fmt::format("in quarantine: {}", it->second.reason)});
    for (auto const& [name, reservation] : desired.reservations)
        if (std::ranges::find(reservation.vfs, id) != reservation.vfs.end())
            uses.push_back(
                {id,
                 fmt::format("reserved as {} until {}", name, to_rfc3339(reservation.expires_at)),
                 {},
                 name});
}

}  // namespace

std::vector<VfUse> vf_uses(HostView const& host, DesiredState const& desired,
                           PciAddress const& pf) {
    std::vector<VfUse> uses;
    auto const* state = find_pf(host, pf);
    if (!state) return uses;
    auto const users = users_of(host, desired, pf);
    for (auto const& vf : state->vfs) uses_of(uses, users, desired, VfId{pf, vf.index}, vf);
    return uses;
}

std::optional<BindVfs> bind_unused(HostView const& host, DesiredState const& desired,
                                   PfState const& pf, PfSpec const& spec) {
    if (!spec.vf_driver) return std::nullopt;
    std::set<std::uint16_t> used;
    for (auto const& use : vf_uses(host, desired, pf.info.pci)) used.insert(use.vf.index);
    BindVfs bind{pf.info.pci, {}, spec.vf_driver};
    for (auto const& vf : pf.vfs)
        if (vf.driver != spec.vf_driver && !used.contains(vf.index)) bind.vfs.push_back(vf.index);
    if (bind.vfs.empty()) return std::nullopt;
    return bind;
}

}  // namespace vfmgr
