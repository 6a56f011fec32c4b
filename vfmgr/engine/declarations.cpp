// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/declarations.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/engine/state.hpp"
#include "vfmgr/plan/released.hpp"

namespace vfmgr {
namespace {

// The pool says what else the VFs get; the VM can't say it.
AttachmentSpec spec_of(DeclaredVfs const& vfs, VmInfo const& vm) {
    AttachmentSpec spec;
    spec.vm = vm.uuid;
    spec.pool = vfs.pool;
    spec.persistence = Persistence::live;
    spec.verify_profile = vfs.verify_profile;
    return spec;
}

// Those of its last start, which are about to end, or of this one, from before vfmgrd started.
enum class Had { none, of_this_start, others };

Had declared_of(DesiredState const& desired, VmInfo const& vm) {
    auto had = Had::none;
    for (auto const& [id, attachment] : desired.attachments) {
        if (attachment.vm_uuid != vm.uuid || !is_declared(attachment)) continue;
        if (!has_hostdev(vm.live, hostdev_alias(id), attachment.vf_pci)) return Had::others;
        had = Had::of_this_start;
    }
    return had;
}

}  // namespace

void Declarations::attach_declared(Control::State& state) {
    auto const host = seams().control.snapshot().host;
    if (operations_.stopping() || host->hypervisor.stale) return;
    std::map<std::string, std::int32_t> served;
    for (auto const& [uuid, vm] : host->hypervisor.vms) {
        if (!vm.start_id || (vm.declared.empty() && !vm.declared_wrong)) continue;
        auto const known = served_.find(uuid);
        bool const is_served = known != served_.end() && known->second == *vm.start_id;
        auto const had = is_served ? Had::of_this_start : declared_of(state.desired(), vm);
        if (had == Had::others) continue;
        served[uuid] = *vm.start_id;
        if (had == Had::none) attach(state, vm);
    }
    served_ = std::move(served);
}

void Declarations::attach(Control::State& state, VmInfo const& vm) {
    if (vm.declared_wrong) return report_refused(state, vm, *vm.declared_wrong);
    std::vector<AttachmentSpec> specs;
    for (auto const& vfs : vm.declared) {
        auto const pool = state.desired().pools.find(vfs.pool);
        if (pool == state.desired().pools.end())
            return report_refused(state, vm, fmt::format("there is no pool {}", vfs.pool));
        if (!pool->second.pool.from_metadata.value_or(false))
            return report_refused(
                state, vm,
                fmt::format("pool {} is not for VMs that declare it; an admin opens it: vfctl pool "
                            "set {} --from-metadata on",
                            vfs.pool, vfs.pool));
        specs.insert(specs.end(), vfs.count, spec_of(vfs, vm));
    }
    submit_(Attach{std::move(specs)}, vm.uuid, [this, vm](Result<Answer> const& answer) {
        if (answer) return;
        seams().control.post([this, vm, why = answer.error().detail](Control::State& later) {
            report_refused(later, vm, why);
        });
    });
}

// If the store can't be written, the VM's next start reports it.
void Declarations::report_refused(Control::State& state, VmInfo const& vm, std::string why) {
    Event event;
    event.kind = EventKind::declaration_refused;
    event.at = seams().clock.now();
    event.vm = vm.name;
    event.vm_uuid = vm.uuid;
    event.detail = fmt::format("VM {} gets no VF by its metadata: {}", vm.name, std::move(why));
    Batch batch;
    batch.save_events.push_back(std::move(event));
    static_cast<void>(state.commit(std::move(batch)).has_value());
}

}  // namespace vfmgr
