// SPDX-License-Identifier: Apache-2.0
// Recovery after a crash, or a stop that did not wait. Each interrupted operation ends in the old
// state, the new state, or quarantine with the residue listed. Recovery takes their claims before
// anything is served, so no other operation changes their PFs and VMs; the rest of the host is
// served meanwhile.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "vfmgr/engine/documents.hpp"
#include "vfmgr/engine/identities.hpp"
#include "vfmgr/engine/recovery.hpp"
#include "vfmgr/engine/state.hpp"

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

Error by_the_end_of_vfmgrd(std::string const& end) {
    return {Problem::unavailable, "vfmgrd was stopped while this ran; " + end,
            "check the host's state and try again"};
}

// The attachments that the operation is about, and that have not ended. Of one, the subject ends
// with the id.
std::vector<Attachment> attachments_of(Operation const& operation, DesiredState const& desired) {
    auto ids = operation.attachments;
    if (ids.empty()) ids.push_back(operation.subject.substr(operation.subject.rfind('/') + 1));
    std::vector<Attachment> all;
    for (auto const& id : ids)
        if (auto const found = desired.attachments.find(id); found != desired.attachments.end())
            all.push_back(found->second);
    return all;
}

void add_attachment(ClaimKeys& keys, Attachment const& attachment) {
    keys.merge(claims_on(attachment));
}

void add_link(ClaimKeys& keys, SoftRdmaLink const& link) {
    keys.insert({RdmaLinkKey{link.name}, NetdevKey{link.ifname}});
}

// Adds the keys of what a step changes.
void add_step(ClaimKeys& keys, Step const& step) {
    if (auto const* const added = as<AddSoftRdmaLink>(step)) {
        add_link(keys, added->link);
    } else if (auto const* const removed = as<RemoveSoftRdmaLink>(step)) {
        keys.insert(RdmaLinkKey{removed->name});
    } else if (auto const* const kernels = std::get_if<KernelStep>(&step)) {
        auto const subject = subject_of(*kernels);
        if (auto const* pf = std::get_if<PciAddress>(&subject)) keys.insert(*pf);
    } else if (auto const* const vms = std::get_if<HypervisorStep>(&step)) {
        std::visit([&](auto const& one) { keys.insert(VmKey{one.vm_uuid}); }, *vms);
    }
}

// "/v1/attachments/ID", "/v1/pfs/PF", "/v1/pfs/PF/vfs/3", "/v1/rdma-links/NAME".
void add_subject(ClaimKeys& keys, std::string_view subject, DesiredState const& desired) {
    auto const after = [&](std::string_view prefix) -> std::optional<std::string> {
        if (!subject.starts_with(prefix)) return std::nullopt;
        auto const rest = subject.substr(prefix.size());
        return std::string(rest.substr(0, rest.find('/')));
    };
    if (auto const pf = after("/v1/pfs/")) {
        if (auto const pci = PciAddress::parse(*pf)) keys.insert(*pci);
        for (auto const& [vf, quarantine] : desired.quarantine)
            if (subject.ends_with(fmt::format("{}/vfs/{}", to_string(vf.pf), vf.index)))
                add_attachment(keys, quarantine.attachment);
    } else if (auto const link = after("/v1/rdma-links/")) {
        keys.insert(RdmaLinkKey{*link});
        if (auto const known = desired.rdma_links.find(*link); known != desired.rdma_links.end())
            add_link(keys, known->second.link);
    } else if (auto const id = after("/v1/attachments/")) {
        if (auto const attachment = desired.attachments.find(*id);
            attachment != desired.attachments.end())
            add_attachment(keys, attachment->second);
    }
}

void add_pfs_of_netdevs(ClaimKeys& keys, HostView const& host) {
    for (auto const& [pci, pf] : host.kernel.pfs)
        if (keys.contains(NetdevKey{pf.info.ifname})) keys.insert(pci);
}

// Returns what a command will claim when it is accepted.
struct Claiming {
    Snapshot const& now;

    ClaimKeys operator()(ReplacePfSpec const& command) const { return of_pf(command.pf); }
    // These change only what is stored.
    ClaimKeys operator()(PutNetwork const&) const { return {}; }
    ClaimKeys operator()(RemoveNetwork const&) const { return {}; }
    ClaimKeys operator()(PutPool const&) const { return {}; }
    ClaimKeys operator()(RemovePool const&) const { return {}; }
    ClaimKeys operator()(PutTenant const&) const { return {}; }
    ClaimKeys operator()(RemoveTenant const&) const { return {}; }
    ClaimKeys operator()(PutIdentities const&) const { return {}; }
    ClaimKeys operator()(JoinFleet const&) const { return {}; }
    ClaimKeys operator()(LeaveFleet const&) const { return {}; }
    ClaimKeys operator()(ConfirmRestored const&) const { return {}; }
    ClaimKeys operator()(Reserve const&) const { return {}; }
    ClaimKeys operator()(Release const&) const { return {}; }
    ClaimKeys operator()(ForgetPf const& command) const { return of_pf(command.pf); }
    ClaimKeys operator()(EndGonePf const& command) const { return of_pf(command.pf); }
    ClaimKeys operator()(ConfirmGonePf const& command) const { return of_pf(command.pf); }
    ClaimKeys operator()(RekeyPf const& command) const {
        auto keys = of_pf(command.from);
        keys.merge(of_pf(command.to));
        return keys;
    }
    ClaimKeys operator()(Attach const& command) const {
        ClaimKeys keys;
        for (auto const& spec : command.specs) {
            for (auto const& [pci, pf] : now.host->kernel.pfs)
                if (pci == spec.pf.value_or(pci)) keys.insert(pci);
            if (auto const* const vm = find_vm(*now.host, spec.vm)) keys.insert(VmKey{vm->uuid});
        }
        return keys;
    }
    ClaimKeys operator()(ChangeAttachment const& command) const {
        return of_subject("/v1/attachments/" + command.attachment);
    }
    ClaimKeys operator()(Detach const& command) const {
        ClaimKeys keys;
        for (auto const& id : command.attachments) keys.merge(of_subject("/v1/attachments/" + id));
        return keys;
    }
    ClaimKeys operator()(LiftQuarantine const& command) const { return of_pf(command.vf.pf); }
    ClaimKeys operator()(ReplaceDesired const& command) const { return claims_of(now, command); }
    ClaimKeys operator()(Verify const&) const { return {}; }  // changes nothing
    ClaimKeys operator()(ChangeFirmware const& command) const {
        ClaimKeys keys;
        for (auto const& function : command.card.functions) keys.merge(of_pf(function));
        return keys;
    }
    ClaimKeys operator()(PlaceInVm const& command) const {
        auto const* const vm = find_vm(*now.host, command.vm);
        return vm ? ClaimKeys{VmKey{vm->uuid}} : ClaimKeys{};
    }
    ClaimKeys operator()(AddLink const& command) const {
        ClaimKeys keys;
        add_link(keys, command.link);
        add_pfs_of_netdevs(keys, *now.host);
        return keys;
    }
    ClaimKeys operator()(RemoveLink const& command) const {
        auto keys = of_subject("/v1/rdma-links/" + command.what.name);
        add_pfs_of_netdevs(keys, *now.host);
        return keys;
    }

  private:
    static ClaimKeys of_pf(PciAddress const& pf) { return {pf}; }
    [[nodiscard]] ClaimKeys of_subject(std::string const& subject) const {
        ClaimKeys keys;
        add_subject(keys, subject, *now.desired);
        return keys;
    }
};

// All keys that the operation claimed, or would have claimed next.
ClaimKeys keys_of(UnfinishedOperation const& unfinished, Snapshot const& now) {
    ClaimKeys keys;
    add_subject(keys, unfinished.operation.subject, *now.desired);
    for (auto const& one : attachments_of(unfinished.operation, *now.desired))
        add_attachment(keys, one);
    for (auto const& record : unfinished.records) {
        add_step(keys, record.step);
        for (auto const& step : record.undo) add_step(keys, step);
    }
    add_pfs_of_netdevs(keys, *now.host);
    return keys;
}

// Operations that share claims, in the order in which they began.
struct Group {
    ClaimKeys keys;
    std::vector<UnfinishedOperation> operations;
};

std::vector<Group> groups_of(std::vector<UnfinishedOperation> unfinished, Snapshot const& now) {
    std::vector<std::pair<ClaimKeys, std::vector<std::size_t>>> groups;
    for (std::size_t i = 0; i < unfinished.size(); ++i) {
        auto keys = keys_of(unfinished[i], now);
        std::vector<std::size_t> members{i};
        std::erase_if(groups, [&](auto& group) {
            if (std::ranges::none_of(group.first,
                                     [&](auto const& key) { return keys.contains(key); }))
                return false;
            keys.merge(group.first);
            members.insert(members.end(), group.second.begin(), group.second.end());
            return true;
        });
        groups.emplace_back(std::move(keys), std::move(members));
    }
    std::vector<Group> all;
    for (auto& [keys, members] : groups) {
        std::ranges::sort(members);
        all.push_back({std::move(keys), {}});
        for (auto const i : members) all.back().operations.push_back(std::move(unfinished[i]));
    }
    return all;
}

}  // namespace

Result<bool> Recovery::recover(Recovered const& ended) {
    VFMGR_TRY(auto unfinished,
              seams().control.wait([](Control::State& state) { return state.store.unfinished(); }));
    auto const observed = observe_for(seams(), std::nullopt);
    if (!observed && !unfinished.empty()) return fail(observed.error());
    bool const observed_already = observed && unfinished.empty();
    auto groups = groups_of(std::move(unfinished), seams().control.snapshot());
    seams().control.wait([&](Control::State&) {
        for (auto const& group : groups)  // a group ends with its oldest operation
            for (auto const& key : group.keys)
                recovering_.emplace(key, group.operations.front().operation.id);
        return true;
    });
    // There are no claims yet, so this does not wait.
    for (auto& group : groups) {
        auto const& keys = group.keys;
        auto claim = operations_.claims().take(keys);
        auto const all =
            std::make_shared<std::vector<UnfinishedOperation>>(std::move(group.operations));
        VFMGR_CHECK(operations_.spawn([this, claim, all, keys, ended]() mutable {
            recover_group(*all, keys, ended);
            seams().control.post([this, keys](Control::State&) {
                for (auto const& key : keys) recovering_.erase(key);
            });
            claim.reset();
        }));
    }
    return observed_already;
}

// Refuses commands instead of queueing them: a guest may keep recovery waiting for a long time, and
// the client may want something else afterwards.
Result<void> Recovery::check_recovered(Control::State& state, Command const& command) const {
    if (recovering_.empty()) return {};
    for (auto const& key : std::visit(Claiming{seams().control.snapshot()}, command)) {
        auto const found = recovering_.find(key);
        if (found == recovering_.end()) continue;
        // Clients can see that the operation has ended a moment before its keys are erased.
        VFMGR_TRY(auto const operation, state.store.operation(found->second));
        if (operation && finished(*operation)) continue;
        return fail(Problem::unavailable,
                    fmt::format("{} is in recovery: vfmgrd ended during operation {}, which is "
                                "being ended now; nothing else begins there",
                                to_string(key), found->second),
                    fmt::format("try again when it has ended: vfctl op wait {}", found->second));
    }
    return {};
}

// Recovers the newest operation first: what it built on an earlier one's changes is undone first.
void Recovery::recover_group(std::vector<UnfinishedOperation>& group, ClaimKeys const& claimed,
                             Recovered const& ended) {
    // Waits for a worker of the previous vfmgrd that may still be at its step.
    for (auto const& key : claimed)
        if (auto const* const pf = std::get_if<PciAddress>(&key))
            static_cast<void>(seams().kernel.observe(*pf).has_value());
    for (auto one = group.rbegin(); one != group.rend(); ++one) {
        if (auto const what = exception_of([&] { recover_one(*one, by_the_end_of_vfmgrd); }))
            operations_.end_by_exception(one->operation, *what);
        ended(one->operation);
    }
}

// Runs on the operation's thread, as recovery does after a crash.
void Recovery::recover_from(Operation& operation, std::string const& exception) {
    auto const what = fmt::format("an exception ended operation {}: {}", operation.id, exception);
    auto const cut_short = [&](std::string const& end) {
        return Error{Problem::internal, fmt::format("{}; {}", what, end),
                     "report this with the daemon's log"};
    };
    auto const again = exception_of([&] {
        seams().control.report_bug(what);
        auto all =
            seams().control.wait([](Control::State& state) { return state.store.unfinished(); });
        if (!all) throw std::runtime_error(all.error().detail);
        auto const one = std::ranges::find(
            *all, operation.id, [](UnfinishedOperation const& each) { return each.operation.id; });
        if (one == all->end()) return;  // the operation had ended
        auto const claim = operations_.claims().take(keys_of(*one, seams().control.snapshot()));
        recover_one(*one, cut_short);
    });
    if (again)
        operations_.end_by_exception(
            operation,
            fmt::format("{}; another exception ended its recovery: {}", exception, *again));
}

void Recovery::recover_one(UnfinishedOperation& unfinished, CutShort const& cut_short) {
    auto& operation = unfinished.operation;
    // Needed in every case. If it fails, the undo tries again, or the kernel names the value when a
    // step needs it.
    auto same_device = unfinished.records;
    auto const now = seams().control.snapshot();
    static_cast<void>(take_out_others(same_device, *now.host, *now.desired));
    static_cast<void>(restore_values(seams(), same_device));
    if (operation.kind == OperationKind::attach || operation.kind == OperationKind::detach)
        return recover_attachments(unfinished, cut_short);
    // A restore is repeated at every start, and a PF that is gone has nothing to undo. A change of
    // an attachment has no records once it is stored, also while it is still to be proved.
    bool const stands =
        operation.kind == OperationKind::change_attachment && unfinished.records.empty();
    if (stands || operation.kind == OperationKind::verify ||
        operation.kind == OperationKind::restore || operation.kind == OperationKind::end_gone_pf)
        return operations_.finish(operation,
                                  fail(cut_short("nothing on the host had to be undone")), {});
    auto const residue = undo_here(operation, std::move(unfinished.records));
    auto end = residue.empty()
                   ? std::string("its changes were undone")
                   : fmt::format("this could not be undone: {}", fmt::join(residue, "; "));
    operations_.finish(operation, fail(cut_short(end)), {});
}

// The host may have been off meanwhile, and the card moved.
std::vector<std::string> Recovery::undo_here(Operation& operation,
                                             std::vector<JournalRecord> records) {
    auto const now = seams().control.snapshot();
    auto residue = take_out_others(records, *now.host, *now.desired);
    std::ranges::move(undo(seams(), operation, std::move(records)), std::back_inserter(residue));
    return residue;
}

void Recovery::recover_attachments(UnfinishedOperation& unfinished, CutShort const& cut_short) {
    auto& operation = unfinished.operation;
    auto const attachments = attachments_of(operation, *seams().control.snapshot().desired);
    // The crash came between the attachment's end and the operation's, so only the outcome is
    // missing. Or this was a lift.
    if (attachments.empty())
        return operations_.finish(operation,
                                  fail(cut_short("the attachment had ended or had not begun")), {});
    // libvirtd may still execute the request that was in flight when the daemon died: the XML is
    // reliable only when its job has ended (vfmgr/hypervisor/LIBVIRT.md#requests-in-flight).
    std::map<std::string, std::string> vms;
    for (auto const& one : attachments)
        if (!one.holder) vms.emplace(one.vm_uuid, one.vm);
    for (auto const& [uuid, name] : vms)
        if (auto settled = seams().hypervisor.settle(uuid, seams().clock.steady_now() + 60s);
            !settled)
            return operations_.finish(
                operation, fail(settled.error()),
                attachments_.quarantined(
                    attachments,
                    "libvirt did not end its job for the VM: " + settled.error().detail,
                    {fmt::format("VM {} may hold the VF", name)}));
    auto const& first = attachments.front();
    bool const in_vm =
        operation.kind == OperationKind::detach || first.state != AttachmentState::attaching;
    if (in_vm && operation.kind == OperationKind::attach && first.spec.adopt)
        return operations_.finish(
            operation, fail(cut_short("the attachment stands, and is not verified")), {});
    if (in_vm) {
        std::vector<std::string> left;
        for (auto const& one : attachments)
            if (auto const back = attachments_.perform_detach(operation, one); !back)
                left.push_back(back.error().detail);
        auto const end = left.empty() ? std::string("the VF was detached")
                                      : fmt::format("{}", fmt::join(left, "; "));
        return operations_.finish(operation, fail(cut_short(end)), {});
    }
    auto const residue = undo_here(operation, std::move(unfinished.records));
    if (residue.empty() || first.spec.adopt) {
        auto const end = residue.empty() ? std::string("its changes were undone")
                                         : fmt::format("still to do: {}", fmt::join(residue, "; "));
        return operations_.finish(operation, fail(cut_short(end)),
                                  attachments_.without(attachments));
    }
    operations_.finish(
        operation, fail(cut_short("the VF is in quarantine")),
        attachments_.quarantined(attachments, "an attach was cut short and could not be undone",
                                 residue));
}

}  // namespace vfmgr
