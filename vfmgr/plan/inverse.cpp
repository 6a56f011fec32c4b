// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>

#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/plan.hpp"

namespace vfmgr {
namespace {

struct Inverter {
    HostView const& before;

    using Steps = std::vector<Step>;

    [[nodiscard]] HostInterface const* interface(InterfaceId const& id) const {
        return find_interface(before, id);
    }

    // Whether the VM behind this peer reaches the guest plane's TCP port.
    [[nodiscard]] bool plane(auto const& peer) const {
        auto const* const on = interface(peer.interface);
        if (!on) return false;
        auto const vm = std::ranges::find(on->closed, peer.address, &ClosedVm::address);
        return vm != on->closed.end() && vm->guest_plane;
    }

    Steps operator()(SetNumVfs const& step) const {
        auto const* pf = find_pf(before, step.pf);
        if (!pf || pf->info.num_vfs == step.count) return {};
        Steps steps{SetNumVfs{step.pf, pf->info.num_vfs}};
        if (pf->drivers_autoprobe) steps.push_back(SetPciValues{step.pf, pf->drivers_autoprobe});
        return steps;
    }
    Steps operator()(ConfigureVfs const& step) const {
        ConfigureVfs back{step.pf, {}, {}};
        for (auto const& change : step.changes) {
            auto const* vf = find_vf(before, VfId{step.pf, change.index});
            if (!vf) continue;
            // A value that the driver never reported can't be restored, and the undo does not claim
            // to.
            auto const old = only_members_of(change.settings, vf->settings);
            if (!empty(old)) back.changes.push_back({change.index, old});
        }
        if (back.changes.empty()) return {};
        return {std::move(back)};
    }
    Steps operator()(BindVfs const& step) const {
        std::map<std::optional<std::string>, std::vector<std::uint16_t>> had;
        for (auto const index : step.vfs)
            if (auto const* vf = find_vf(before, VfId{step.pf, index});
                vf && vf->driver != step.driver)
                had[vf->driver].push_back(index);
        Steps steps;
        // Clears the override, whatever it was: every bind clears it, too.
        SetPciValues chosen{step.pf};
        for (auto& [driver, vfs] : had) {
            if (step.driver)
                chosen.no_override.insert(chosen.no_override.end(), vfs.begin(), vfs.end());
            steps.push_back(BindVfs{step.pf, std::move(vfs), driver});
        }
        if (!chosen.no_override.empty()) steps.push_back(std::move(chosen));
        return steps;
    }
    Steps operator()(ResetVf const& step) const {
        auto const* pf = find_pf(before, step.vf.pf);
        if (!pf) return {};
        for (auto const& vf : pf->reset_methods)
            if (vf.index == step.vf.index) return {SetPciValues{step.vf.pf, {}, {}, {vf}}};
        return {};
    }
    // This step exists only in an undo. Restoring twice gives no better result than once.
    Steps operator()(SetPciValues const&) const { return {}; }
    Steps operator()(SetLink const& step) const {
        auto const* was = interface(step.interface);
        if (!was || (was->up == step.up && was->mtu == step.mtu)) return {};
        return {SetLink{step.interface, was->up, was->mtu}};
    }
    Steps operator()(AwaitCarrier const&) const { return {}; }
    Steps operator()(AddVlanInterface const& step) const {
        if (interface(step.interface)) return {};
        return {RemoveVlanInterface{step.interface}};
    }
    Steps operator()(RemoveVlanInterface const& step) const {
        auto const* was = interface(step.interface);
        if (!was) return {};
        Steps steps{AddVlanInterface{step.interface}, SetLink{step.interface, was->up, was->mtu}};
        for (auto const& address : was->addresses)
            steps.push_back(AddAddress{step.interface, address});
        return steps;
    }
    Steps operator()(AddAddress const& step) const {
        if (has_address(step.interface, step.address)) return {};
        return {RemoveAddress{step.interface, step.address}};
    }
    Steps operator()(RemoveAddress const& step) const {
        if (!has_address(step.interface, step.address)) return {};
        return {AddAddress{step.interface, step.address}};
    }
    Steps operator()(AddPeer const& step) const {
        auto const* was = peer(step.interface, step.address);
        if (!was) return {RemovePeer{step.interface, step.address}};
        if (!was->mac || (*was->mac == step.mac && plane(step) == step.guest_plane)) return {};
        return {AddPeer{step.interface, step.address, *was->mac, step.source, plane(step)}};
    }
    Steps operator()(RemovePeer const& step) const {
        auto const* was = peer(step.interface, step.address);
        auto const* on = interface(step.interface);
        if (!was || !was->mac || on->addresses.empty()) return {};
        auto const closed = std::ranges::find(on->closed, step.address, &ClosedVm::address);
        auto const& source = closed == on->closed.end() ? on->addresses.front() : closed->responder;
        return {AddPeer{step.interface, step.address, *was->mac, source, plane(step)}};
    }
    Steps operator()(AddRdmaLink const& step) const {
        auto const* pf = find_pf(before, step.pf);
        if (!pf || pf->info.rdma_device) return {};
        return {RemoveRdmaLink{step.pf}};
    }
    Steps operator()(RemoveRdmaLink const& step) const {
        auto const* pf = find_pf(before, step.pf);
        if (!pf || pf->info.rdma_driver != "rxe") return {};
        return {AddRdmaLink{step.pf}};
    }
    // Firmware is too slow to be read in every observation: the step has the values that the plan
    // read under the claim.
    Steps operator()(SetFirmware const& step) const {
        if (empty(step.was)) return {};
        return {SetFirmware{step.pf, step.was, step.settings}};
    }
    Steps operator()(AddSoftRdmaLink const& step) const {
        auto const& network = before.kernel.network;
        if (!network || network->rdma.contains(step.link.name)) return {};
        return {RemoveSoftRdmaLink{step.link.name, false}};
    }
    Steps operator()(RemoveSoftRdmaLink const& step) const {
        auto const& network = before.kernel.network;
        if (!network) return {};
        auto const was = network->rdma.find(step.name);
        if (was == network->rdma.end() || !was->second.type || !was->second.ifname) return {};
        return {AddSoftRdmaLink{{step.name, *was->second.type, *was->second.ifname}}};
    }
    // The undo ends it even if the holder had the VF before: the undo of the VF's binding follows.
    Steps operator()(AttachExternal const& step) const {
        DetachExternal back{step.vf, step.holder};
        if (step.uid) back.owner = node_owner(step.vf);
        return ended_and_reset(back, step.vf);
    }
    Steps operator()(DetachExternal const& step) const {
        AttachExternal back{step.vf, step.holder};
        if (auto const had = node_owner(step.vf); step.owner && had != step.owner) back.uid = had;
        return {back};
    }
    Steps operator()(AttachHostdev const& step) const {
        DetachHostdev back{step.vm_uuid, step.attachment, step.vf, step.pci,
                           step.live,    step.config,     step.vm};
        if (auto const* vm = find_vm(before, step.vm_uuid)) {
            back.live = back.live && !find_hostdev(vm->live, step.pci);
            back.config = back.config && !find_hostdev(vm->config, step.pci);
        }
        if (!back.live && !back.config) return {};
        return ended_and_reset(back, step.vf);
    }
    Steps operator()(DetachHostdev const& step) const {
        auto const* vm = find_vm(before, step.vm_uuid);
        if (!vm) return {};
        AttachHostdev back{step.vm_uuid, step.attachment, step.vf, step.pci,
                           {},           false,           false,   step.vm};
        back.live = step.live && find_hostdev(vm->live, step.pci);
        back.config = step.config && find_hostdev(vm->config, step.pci);
        if (!back.live && !back.config) return {};
        return {back};
    }
    Steps operator()(MarkHostdev const& step) const {
        auto const* vm = find_vm(before, step.vm_uuid);
        if (!vm || !step.config) return {};
        auto const* const was = find_hostdev(vm->config, step.pci);
        if (!was || (was->alias == step.alias && was->managed == step.managed)) return {};
        auto back = step;
        back.alias = was->alias;
        back.managed = was->managed;
        return {back};
    }
    Steps operator()(AddVsock const&) const { return {}; }
    Steps operator()(PlaceHostdevs const& step) const {
        auto const* const vm = find_vm(before, step.vm_uuid);
        if (!vm || !vm->pcie || vm->pcie->placed == step.hostdevs) return {};
        return {PlaceHostdevs{step.vm_uuid, vm->pcie->placed, step.vm}};
    }
    Steps operator()(AwaitVerification const&) const { return {}; }

  private:
    // Whoever had the VF for a moment may have used it: without a reset nobody else would get it.
    [[nodiscard]] Steps ended_and_reset(Step end, VfId const& vf) const {
        ResetVf const reset{vf};
        Steps steps{std::move(end), reset};
        std::ranges::move((*this)(reset), std::back_inserter(steps));
        return steps;
    }
    [[nodiscard]] std::optional<std::uint32_t> node_owner(VfId const& id) const {
        auto const* const vf = find_vf(before, id);
        return vf && vf->vfio ? std::optional(vf->vfio->owner) : std::nullopt;
    }
    [[nodiscard]] bool has_address(InterfaceId const& id, IpAddress const& address) const {
        auto const* on = interface(id);
        return on && std::ranges::find(on->addresses, address) != on->addresses.end();
    }
    [[nodiscard]] PeerEntry const* peer(InterfaceId const& id, IpAddress const& address) const {
        auto const* on = interface(id);
        if (!on) return nullptr;
        auto const found = std::ranges::find(on->peers, address, &PeerEntry::address);
        return found == on->peers.end() ? nullptr : &*found;
    }
};

}  // namespace

std::vector<Step> inverse(Step const& step, HostView const& before) {
    return visit_step(Inverter{before}, step);
}

}  // namespace vfmgr
