// SPDX-License-Identifier: Apache-2.0
#include "service/broker/records.hpp"

#include <algorithm>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/json.hpp"

namespace vfmgr::broker {
namespace {

std::vector<VfId> vfs_of(Step const& step) {
    std::vector<VfId> vfs;
    if (auto const* const configure = as<ConfigureVfs>(step))
        for (auto const& change : configure->changes) vfs.push_back({configure->pf, change.index});
    else if (auto const* const bind = as<BindVfs>(step))
        for (auto const index : bind->vfs) vfs.push_back({bind->pf, index});
    else if (auto const* const reset = as<ResetVf>(step))
        vfs.push_back(reset->vf);
    else if (auto const* const attach = as<AttachHostdev>(step))
        vfs.push_back(attach->vf);
    else if (auto const* const external = as<AttachExternal>(step))
        vfs.push_back(external->vf);
    return vfs;
}

// A line of the file.
struct Kept {
    VfId vf;
    VfRecord record;
};

template <class F, Of<Kept> V>
void fields(F& f, V& kept) {
    f.value("vf", kept.vf);
    f.read_by("baseline", kept.record.baseline, read_reported);
    f.maybe("driver", kept.record.driver);
    f.maybe("vm_uuid", kept.record.vm_uuid);
    f.value("clean", kept.record.clean);
    f.maybe("pci", kept.record.pci);
    f.maybe("node_owner", kept.record.node_owner);
}

struct KeptRecords {
    std::vector<Kept> vfs;
};

template <class F, Of<KeptRecords> V>
void fields(F& f, V& all) {
    f.value("vfs", all.vfs);
}

// The VM that has each VF from vfmgr. One that runs has it, whatever the XML of others names.
std::map<PciAddress, std::string> attached_in(HypervisorView const& view) {
    std::map<PciAddress, std::string> vms;
    for (auto const part : {&VmInfo::config, &VmInfo::live})
        for (auto const& [uuid, vm] : view.vms)
            for (auto const& hostdev : vm.*part)
                if (is_ours(hostdev)) vms.insert_or_assign(hostdev.pci, uuid);
    return vms;
}

bool is_same(Records const& records, Records const& others, VfId const& vf) {
    auto const one = records.find(vf);
    auto const other = others.find(vf);
    if (one == records.end() || other == others.end())
        return one == records.end() && other == others.end();
    return one->second == other->second;
}

template <class OfVm>
void record_attached(VfRecord& record, OfVm const& step) {
    ++record.attachments;
    record.vm_uuid = step.vm_uuid;
    record.clean = false;
    record.pci = step.pci;
}

void record_external(VfRecord& record, VfState const* now, AttachExternal const& step,
                     bool had_it) {
    ++record.attachments;
    record.vm_uuid = external_key(step.holder);
    record.clean = false;
    record.pci.reset();
    // The holder's nodes may be its own by now: the record keeps who had them before.
    if (had_it) return;
    record.node_owner.reset();
    if (now && now->vfio && now->vfio->owner != 0) record.node_owner = now->vfio->owner;
}

}  // namespace

bool is_external(VfRecord const& record) {
    return record.vm_uuid && record.vm_uuid->starts_with(external_key({}));
}

bool has_had(Records const& records, AttachExternal const& step) {
    auto const found = records.find(step.vf);
    return found != records.end() && !found->second.clean &&
           found->second.vm_uuid == external_key(step.holder);
}

bool touches_unrecorded(Records const& records, Step const& step) {
    return std::ranges::any_of(vfs_of(step), [&](VfId const& vf) { return !records.contains(vf); });
}

Records recorded_before(Records records, HostView const& host, Step const& step) {
    for (auto const& vf : vfs_of(step))
        if (auto const* const now = find_vf(host, vf))
            records.try_emplace(vf, VfRecord{now->settings, now->driver});
    if (auto const* const attach = as<AttachHostdev>(step))
        record_attached(records[attach->vf], *attach);
    // Somebody else chose the settings that it has by now.
    if (auto const* const mark = as<MarkHostdev>(step))
        record_attached(records.try_emplace(mark->vf, VfRecord{as_made()}).first->second, *mark);
    if (auto const* const external = as<AttachExternal>(step)) {
        bool const had_it = has_had(records, *external);
        record_external(records[external->vf], find_vf(host, external->vf), *external, had_it);
    }
    return records;
}

Records recorded_after(Records records, Records const& began, Step const& step) {
    // Every VF of the PF was made anew, or is gone. That an external holder has one is no XML's to
    // say: at the next boot, this tells it from a VF that a VM may have.
    if (auto const* const number = as<SetNumVfs>(step))
        std::erase_if(records, [&](auto const& one) {
            auto const& [vf, record] = one;
            return vf.pf == number->pf && (record.clean || !is_external(record));
        });
    if (auto const* const reset = as<ResetVf>(step)) {
        auto const before = began.find(reset->vf);
        auto const now = records.find(reset->vf);
        if (before != began.end() && now != records.end() &&
            before->second.attachments == now->second.attachments)
            now->second.clean = true;
    }
    return records;
}

Records with_attached(Records records, Records const& began, HostView const& host) {
    auto const attached = attached_in(host.hypervisor);
    for (auto const& [pf, state] : host.kernel.pfs)
        for (auto const& vf : state.vfs) {
            auto const vm = attached.find(vf.pci);
            VfId const id{pf, vf.index};
            // What was recorded meanwhile is newer than the observation.
            if (vm == attached.end() || !is_same(records, began, id)) continue;
            auto& record = records.try_emplace(id, VfRecord{as_made()}).first->second;
            record.vm_uuid = vm->second;
            record.clean = false;
            record.pci = vf.pci;
        }
    return records;
}

bool has_unrecorded(HypervisorView const& view, Records const& records) {
    auto attached = attached_in(view);
    for (auto const& [vf, record] : records) {
        if (record.clean || !record.pci) continue;
        auto const vm = attached.find(*record.pci);
        if (vm != attached.end() && vm->second == record.vm_uuid) attached.erase(vm);
    }
    return !attached.empty();
}

std::string to_text(Records const& records) {
    KeptRecords kept;
    for (auto const& [vf, record] : records) kept.vfs.push_back({vf, record});
    nlohmann::json out;
    JsonWriter writer(out);
    fields(writer, kept);
    return out.dump(1) + "\n";
}

Result<Records> parse_records(std::string_view text) {
    VFMGR_TRY(auto kept, from_json_text<KeptRecords>(text));
    Records records;
    for (auto& one : kept.vfs) records.insert_or_assign(one.vf, std::move(one.record));
    return records;
}

}  // namespace vfmgr::broker
