// SPDX-License-Identifier: Apache-2.0
#include "service/broker/admit.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/rdma.hpp"
#include "api/types/text.hpp"

namespace vfmgr::broker {
namespace {

constexpr std::size_t driver_bytes_max = 64;

tl::unexpected<Error> refused(Problem problem, std::string detail, std::string remedy) {
    return fail(problem, "the broker refuses this: " + std::move(detail), std::move(remedy));
}

tl::unexpected<Error> unsafe(std::string_view what, std::string_view word) {
    return refused(Problem::invalid_request, fmt::format("{} is no {}", quoted(word), what),
                   "no vfmgrd asks for it: see who runs as its user, journalctl -u vfmgrd");
}

// Words that become parts of paths and of XML.
Result<void> check_words(Step const& step) {
    if (auto const* const bind = as<BindVfs>(step);
        bind && bind->driver && !is_plain_name(*bind->driver, "_-", driver_bytes_max))
        return unsafe("name of a driver", *bind->driver);
    if (auto const* const attach = as<AttachHostdev>(step);
        attach && !is_attachment_id(attach->attachment))
        return unsafe("id of an attachment", attach->attachment);
    if (auto const* const detach = as<DetachHostdev>(step);
        detach && !is_attachment_id(detach->attachment))
        return unsafe("id of an attachment", detach->attachment);
    if (auto const* const attach = as<AttachExternal>(step);
        attach && !can_be_a_holders(attach->holder))
        return unsafe("name of a holder", attach->holder);
    if (auto const* const add = as<AddSoftRdmaLink>(step)) {
        if (wrong_rdma_name(add->link.name)) return unsafe("name of an RDMA link", add->link.name);
        if (wrong_netdev_name(add->link.ifname)) return unsafe("netdev's name", add->link.ifname);
    }
    if (auto const* const remove = as<RemoveSoftRdmaLink>(step);
        remove && wrong_rdma_name(remove->name))
        return unsafe("name of an RDMA link", remove->name);
    return {};
}

// Leaves out what restores the VF's own value.
ConfigureVfs without_baseline(ConfigureVfs step, Records const& records) {
    for (auto& [index, settings] : step.changes) {
        auto const record = records.find({step.pf, index});
        if (record == records.end()) continue;
        auto const& baseline = record->second.baseline;
        for_each_member([&settings = settings, &baseline](VfAttribute, auto member) {
            if (settings.*member == baseline.*member) (settings.*member).reset();
        });
    }
    return step;
}

// What ends an attachment, which may have begun under other bounds. The workers remove only what
// vfmgr made.
bool ends_something(Records const& records, Step const& step) {
    auto const* const bind = as<BindVfs>(step);
    auto const had = [&](std::uint16_t index) {
        auto const record = records.find({bind->pf, index});
        return record != records.end() && record->second.driver == bind->driver;
    };
    if (bind) return std::ranges::all_of(bind->vfs, had);
    if (auto const* const reset = as<ResetVf>(step)) return records.contains(reset->vf);
    return as<DetachHostdev>(step) || as<DetachExternal>(step) || as<RemoveAddress>(step) ||
           as<RemovePeer>(step) || as<RemoveVlanInterface>(step) || as<RemoveRdmaLink>(step);
}

Result<void> check_bounds(HostBounds const& bounds, Records const& records, HostView const& host,
                          Step const& step) {
    if (ends_something(records, step)) return {};
    Plan plan;
    if (auto const* const configure = as<ConfigureVfs>(step))
        plan.steps.emplace_back(without_baseline(*configure, records));
    else
        plan.steps.push_back(step);
    return within(bounds, host, plan);
}

// No record: no VM has had the VF since it was made.
Result<void> check_clean(Records const& records, VfId const& vf, std::string const& vm_uuid) {
    auto const found = records.find(vf);
    if (found == records.end()) return {};
    auto const& record = found->second;
    if (record.clean || record.vm_uuid == vm_uuid) return {};
    return refused(
        Problem::conflict,
        fmt::format("VF {} was not reset since VM {} had it", to_string(vf),
                    record.vm_uuid.value_or("(unknown)")),
        "end that attachment first: its detach resets the VF. If there is none, make the "
        "PF's VFs anew: vfctl pf set PF --num-vfs 0, and then their number");
}

tl::unexpected<Error> in_xml(VfId const& vf, PciAddress const& pci, VmInfo const& vm) {
    return refused(
        Problem::vf_in_use,
        fmt::format("VF {} ({}) is in the XML of VM {}", to_string(vf), to_string(pci), vm.name),
        fmt::format("take it out of that VM first: virsh edit {}", vm.name));
}

Result<void> check_unnamed(VfId const& vf, PciAddress const& pci, HypervisorView const& vms,
                           std::string_view except) {
    for (auto const& [uuid, vm] : vms.vms)
        if (uuid != except && names(vm, pci)) return in_xml(vf, pci, vm);
    return {};
}

// What vfmgr put in a VM's persistent XML alone, vfmgrd can take out, too: it knows whether the VF
// is made anew for that VM.
bool loses(VmInfo const& vm, PciAddress const& pci) {
    return find_hostdev(vm.live, pci) ||
           std::ranges::any_of(vm.config, [&](VmHostdev const& hostdev) {
               return hostdev.pci == pci && !is_ours(hostdev);
           });
}

// `pci`: where the step has the VF, which is in the XML of no VM but `vm_uuid`.
Result<void> check_device(HostView const& host, VfId const& id, std::optional<PciAddress> pci,
                          std::string_view vm_uuid) {
    auto const* const vf = find_vf(host, id);
    if (!vf || (pci && vf->pci != *pci))
        return refused(Problem::conflict,
                       pci ? fmt::format("VF {} is not at {}", to_string(id), to_string(*pci))
                           : fmt::format("there is no VF {}", to_string(id)),
                       "attach it again: it was made anew meanwhile");
    return check_unnamed(id, vf->pci, host.hypervisor, vm_uuid);
}

template <class OfVm>
tl::unexpected<Error> not_its(OfVm const& step) {
    return refused(Problem::conflict,
                   fmt::format("VM {} has no VF at {}", step.vm_uuid, to_string(step.pci)),
                   "adopt what its XML has: virsh dumpxml");
}

// Without a record nobody got the nodes: the step undoes an attach that was refused.
Result<void> check_end(Records const& records, HostView const& host, DetachExternal const& step) {
    auto const found = records.find(step.vf);
    bool const recorded = found != records.end();
    if (recorded && !found->second.clean && found->second.vm_uuid && !is_external(found->second))
        return refused(Problem::conflict,
                       fmt::format("VF {} is VM {}'s", to_string(step.vf), *found->second.vm_uuid),
                       "detach it from that VM");
    auto const* const vf = find_vf(host, step.vf);
    if (!step.owner || *step.owner == 0 || (recorded && step.owner == found->second.node_owner) ||
        (vf && vf->vfio && step.owner == vf->vfio->owner))
        return {};
    return refused(
        Problem::forbidden,
        fmt::format("user {} did not have VF {} before", *step.owner, to_string(step.vf)),
        "no vfmgrd asks for it: see who runs as its user, journalctl -u vfmgrd");
}

Result<void> check_removal(HostView const& host, SetNumVfs const& step) {
    auto const& vfs = host.kernel.pfs.at(step.pf).vfs;
    if (vfs.size() == step.count) return {};
    for (auto const& vf : vfs)
        for (auto const& [uuid, vm] : host.hypervisor.vms)
            if (loses(vm, vf.pci)) return in_xml({step.pf, vf.index}, vf.pci, vm);
    return {};
}

Result<void> check_trusted(std::vector<std::string> const& trusted, std::string const& ifname) {
    if (std::ranges::find(trusted, ifname) != trusted.end()) return {};
    return refused(Problem::forbidden, fmt::format("{} is no trusted network device", ifname),
                   "root names those in [rdma_links] of /etc/vfmgr/vfmgr.toml");
}

}  // namespace

Sight sight_for(Records const& records, Step const& step) {
    if (as<AttachHostdev>(step) || as<MarkHostdev>(step) || as<SetNumVfs>(step))
        return Sight::pf_and_vms;
    if (auto const* const external = as<AttachExternal>(step))
        return has_had(records, *external) ? Sight::pf : Sight::pf_and_vms;
    if (as<DetachExternal>(step)) return Sight::pf;
    return touches_unrecorded(records, step) ? Sight::pf : Sight::nothing;
}

Result<void> admit(HostRules const& rules, Records const& records, HostView const& host,
                   Step const& step) {
    VFMGR_CHECK(check_words(step));
    VFMGR_CHECK(check_bounds(rules.bounds, records, host, step));
    if (auto const* const add = as<AddSoftRdmaLink>(step))
        return check_trusted(rules.trusted_netdevs, add->link.ifname);
    if (auto const* const number = as<SetNumVfs>(step)) return check_removal(host, *number);
    // `host` has no VMs for a holder that has the VF already.
    if (auto const* const external = as<AttachExternal>(step)) {
        VFMGR_CHECK(check_clean(records, external->vf, external_key(external->holder)));
        return check_device(host, external->vf, {}, {});
    }
    if (auto const* const end = as<DetachExternal>(step)) return check_end(records, host, *end);
    // The alias gets into no path, and libvirt takes none that is markup. This VM has the VF, and
    // no other.
    if (auto const* const mark = as<MarkHostdev>(step)) {
        if (check_unnamed(mark->vf, mark->pci, host.hypervisor, {})) return not_its(*mark);
        return check_device(host, mark->vf, mark->pci, mark->vm_uuid);
    }
    // Without our alias, any device of any VM could be named.
    if (auto const* const detach = as<DetachHostdev>(step); detach && detach->by_address) {
        auto const found = records.find(detach->vf);
        if (found == records.end() || found->second.vm_uuid != detach->vm_uuid ||
            found->second.pci != detach->pci)
            return not_its(*detach);
    }
    auto const* const attach = as<AttachHostdev>(step);
    if (attach == nullptr) return {};
    VFMGR_CHECK(check_clean(records, attach->vf, attach->vm_uuid));
    return check_device(host, attach->vf, attach->pci, attach->vm_uuid);
}

}  // namespace vfmgr::broker
