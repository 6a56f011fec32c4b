// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/pf_standing.hpp"
#include "vfmgr/plan/plan.hpp"
#include "vfmgr/plan/readable.hpp"
#include "vfmgr/plan/vf_values.hpp"

namespace vfmgr {
namespace {

// The reset would take the VF from whoever else has it. While the lease's VM runs with it, the one
// that holds it open is that VM.
Result<void> check_others(HostView const& host, Attachment const& lease, VfState const& vf) {
    auto const alias = hostdev_alias(lease.id);
    std::string user;
    if (!vf.holders.empty())
        user = fmt::format("held open by {} (pid {})", vf.holders[0].comm, vf.holders[0].pid);
    if (auto const* own = find_vm(host, lease.vm_uuid);
        own && has_hostdev(own->live, alias, vf.pci))
        user.clear();
    for (auto const& [uuid, vm] : host.hypervisor.vms)
        if (uuid != lease.vm_uuid &&
            (has_hostdev(vm.live, alias, vf.pci) || has_hostdev(vm.config, alias, vf.pci)))
            user = fmt::format("a device of VM {} as well", vm.name);
    if (user.empty()) return {};
    return fail(Problem::vf_in_use, fmt::format("VF {} is {}", to_string(lease.vf), user),
                "take it from there first: vfmgr did not give it to them");
}

void take_out_of_vm(Plan& plan, HostView const& host, Attachment const& lease) {
    auto const* vm = find_vm(host, lease.vm_uuid);
    if (!vm) {
        plan.notes.push_back(fmt::format("VM {} is gone", lease.vm_name));
        return;
    }
    auto const alias = hostdev_alias(lease.id);
    DetachHostdev detach{vm->uuid,
                         lease.id,
                         lease.vf,
                         lease.vf_pci,
                         has_hostdev(vm->live, alias, lease.vf_pci),
                         has_hostdev(vm->config, alias, lease.vf_pci),
                         vm->name};
    if (!detach.live && !detach.config) return;
    plan.steps.emplace_back(detach);
    if (detach.live)
        plan.blast_radius.push_back(
            fmt::format("unplugs VF {} from the running VM {}", to_string(lease.vf), vm->name));
}

void clean(Plan& plan, Attachment const& lease, VfState const& vf,
           std::optional<std::string> const& idle_driver) {
    auto const& [pf, index] = lease.vf;
    plan.steps.emplace_back(ResetVf{lease.vf});
    // Only what differs: a driver may refuse to be told what already is.
    auto const change = differing(lease.baseline, vf.settings);
    if (empty(change) && vf.driver == idle_driver) return;
    if (vf.driver) plan.steps.emplace_back(BindVfs{pf, {index}, std::nullopt});
    if (!empty(change)) plan.steps.emplace_back(ConfigureVfs{pf, {VfChange{index, change}}, {}});
    if (idle_driver) plan.steps.emplace_back(BindVfs{pf, {index}, idle_driver});
}

void restore_lease(Plan& plan, HostView const& host, Attachment const& lease) {
    auto const* vf = find_vf(host, lease.vf);
    if (vf && vf->driver == lease.driver) return;
    auto const& [pf, index] = lease.vf;
    if (!vf) {
        plan.notes.push_back(fmt::format("VF {} does not exist, and VM {} can't start with it",
                                         to_string(lease.vf), lease.vm_name));
        return;
    }
    if (!vf->holders.empty()) {
        plan.notes.push_back(fmt::format("VF {} is held open by {} (pid {}) and left alone",
                                         to_string(lease.vf), vf->holders[0].comm,
                                         vf->holders[0].pid));
        return;
    }
    if (vf->pci != lease.vf_pci) {
        plan.notes.push_back(fmt::format("VF {} is now at {}, but the XML of VM {} names {}",
                                         to_string(lease.vf), to_string(vf->pci), lease.vm_name,
                                         to_string(lease.vf_pci)));
        return;
    }
    if (vf->driver) plan.steps.emplace_back(BindVfs{pf, {index}, std::nullopt});
    if (auto const change = differing(lease.settings, vf->settings); !empty(change))
        plan.steps.emplace_back(
            ConfigureVfs{pf, {VfChange{index, change}}, lease.spec.best_effort});
    plan.steps.emplace_back(BindVfs{pf, {index}, lease.driver});
}

// A VM's XML names addresses: what is bound at one of them without being known for the VM's own is
// another device to it. An unknown one is left alone: the VM then fails to start.
Result<void> require_proof(HostView const& host, DesiredState const& desired,
                           PciAddress const& pf) {
    auto const standing = standing_of(host.kernel, desired, pf);
    if (empty(standing.known) || standing.proved) return {};
    return fail(Problem::unavailable,
                fmt::format("nothing shows that {} is the PF that was there before ({}): its MAC "
                            "or GUID can't be read",
                            to_string(pf), to_string(standing.known)),
                "load its driver and, where it was moved to another network namespace, bring its "
                "interface back; then: systemctl start vfmgr-restore");
}

}  // namespace

Result<Plan> plan_release(HostView const& host, DesiredState const& desired,
                          Attachment const& lease) {
    VFMGR_CHECK(require_same_pf(host, desired, lease.vf.pf));
    VFMGR_TRY(PfState const* pf, readable_pf(host, lease.vf.pf));
    if (host.hypervisor.stale)
        return fail(Problem::unavailable,
                    fmt::format("libvirt can't be asked: {}", host.hypervisor.stale_reason),
                    "start libvirtd and try again");
    auto const* vf = find_vf(host, lease.vf);
    if (vf) VFMGR_CHECK(check_others(host, lease, *vf));
    Plan plan;
    take_out_of_vm(plan, host, lease);
    auto const managed = desired.pfs.find(lease.vf.pf);
    if (vf)
        clean(plan, lease, *vf,
              managed == desired.pfs.end() ? std::nullopt : managed->second.spec.vf_driver);
    else
        plan.notes.push_back(fmt::format("VF {} does not exist any more", to_string(lease.vf)));
    if (managed != desired.pfs.end() && managed->second.base) {
        auto const& [spec, revision, base] = managed->second;
        auto const want =
            wanted_links(lease.vf.pf, spec, *base, leases_on(desired, lease.vf.pf, lease.id));
        auto down = links_down(*pf, want, spec, *base);
        plan.steps.insert(plan.steps.end(), down.begin(), down.end());
    }
    return plan;
}

Result<Plan> plan_restore(HostView const& host, DesiredState const& desired, PciAddress const& pf) {
    VFMGR_CHECK(require_same_pf(host, desired, pf));
    VFMGR_TRY(PfState const* state, readable_pf(host, pf));
    auto const managed = desired.pfs.find(pf);
    Plan plan;
    if (managed == desired.pfs.end() || managed->second.spec.mode == PfMode::observe) return plan;
    VFMGR_CHECK(require_proof(host, desired, pf));
    auto const& spec = managed->second.spec;
    auto leases = leases_on(desired, pf, "");
    // A lease that was being made when the host went down is undone by the daemon, not made here.
    std::erase_if(
        leases, [](Attachment const& lease) { return lease.state == AttachmentState::attaching; });
    // Only from nothing: at boot there are none, and VFs that exist may be in use.
    if (spec.num_vfs && *spec.num_vfs > 0 && state->info.num_vfs == 0) {
        // A lease needs the PF up anyway, and bnxt makes no VFs before (operators' list 11).
        if (!leases.empty() && !state->info.up)
            plan.steps.emplace_back(SetLink{LegId{pf, {}}, true, state->info.mtu});
        plan.steps.emplace_back(SetNumVfs{pf, *spec.num_vfs});
        return plan;
    }
    if (!leases.empty() && managed->second.base) {
        auto const& base = *managed->second.base;
        plan.steps = links_up(*state, wanted_links(pf, spec, base, leases), base);
        for (auto const& lease : leases) restore_lease(plan, host, lease);
    }
    // Last: nobody waits for these. What has a driver may be in a VM; libvirt can't tell yet.
    if (auto bind = bind_unused(host, desired, *state, spec)) {
        std::erase_if(bind->vfs, [&](std::uint16_t index) {
            auto const* vf = find_vf(host, VfId{pf, index});
            return !vf || vf->driver;
        });
        if (!bind->vfs.empty()) plan.steps.emplace_back(std::move(*bind));
    }
    return plan;
}

}  // namespace vfmgr
