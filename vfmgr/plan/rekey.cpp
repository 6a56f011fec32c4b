// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/rekey.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "vfmgr/plan/host_view.hpp"
#include "vfmgr/plan/links.hpp"
#include "vfmgr/plan/pf_standing.hpp"

namespace vfmgr {
namespace {

struct Ask {
    HostView const& host;
    DesiredState const& desired;
    std::vector<PciAddress> kept;

    [[nodiscard]] bool is_kept(PciAddress const& pf) const {
        return std::ranges::binary_search(kept, pf);
    }
    [[nodiscard]] PfStanding standing(PciAddress const& pf) const {
        return standing_of(host.kernel, desired, pf);
    }
};

// A PF that moves to another PF's old address makes that PF move too, and so on.
Result<std::vector<PfMove>> moves_of(Ask const& ask, PfMove const& first) {
    std::vector<PfMove> moves{first};
    while (moves.back().to != first.from && ask.is_kept(moves.back().to)) {
        auto const next = moves.back().to;
        auto const standing = ask.standing(next);
        if (!standing.now_at)
            return fail(
                Problem::conflict,
                fmt::format("state is stored for another PF at {} ({}), which is not known to "
                            "be at another address",
                            to_string(next), to_string(standing.known)),
                fmt::format("if that PF is gone: vfctl pf gone {0}, then vfctl pf "
                            "confirm-gone {0}; if it is no longer managed, end its "
                            "attachments and forget it: vfctl query DELETE "
                            "/v1/pfs/{0}/spec",
                            to_string(next)));
        moves.push_back({next, *standing.now_at});
        if (moves.size() > ask.kept.size())
            return fail(Problem::internal, "the moves of the PFs form an endless cycle",
                        "report this as a bug");
    }
    return moves;
}

// Checks that the PF is at no other address than the move says, and not at its old one.
Result<void> check_left(PfStanding const& standing, PfMove const& move) {
    auto const from = to_string(move.from);
    if (standing.now_at && *standing.now_at != move.to)
        return fail(Problem::conflict,
                    fmt::format("PF {} ({}) is at {}, not at {}", from, to_string(standing.known),
                                to_string(*standing.now_at), to_string(move.to)),
                    fmt::format("vfctl pf rekey {} {}", from, to_string(*standing.now_at)));
    if (standing.now_at) return {};
    if (standing.is == Standing::here || standing.is == Standing::driver_unbound)
        return fail(Problem::conflict, fmt::format("PF {} is still at its address", from),
                    "no action is needed");
    if (standing.is == Standing::unknown)
        return fail(Problem::unavailable,
                    fmt::format("it is not known where PF {} is: it was not read", from),
                    "try again when the kernel answers for it");
    return {};
}

// Checks that the device is the known PF. If not, the admin's command declares it the replacement.
Result<void> check_device(PfStanding const& standing, PfMove const& move, PfState const& there,
                          Plan& plan) {
    if (standing.now_at) return {};
    auto const from = to_string(move.from);
    auto const& observed = there.info.identity;
    if (empty(observed))
        return fail(Problem::unsupported,
                    fmt::format("{} has no MAC or GUID that can be read", to_string(move.to)),
                    "load its driver");
    if ((standing.known.mac && !observed.mac) || (standing.known.guid && !observed.guid))
        return fail(
            Problem::unsupported,
            fmt::format("{} is a different kind of device: it has {}, but {} had {}",
                        to_string(move.to), to_string(observed), from, to_string(standing.known)),
            fmt::format("end the attachments of {}, and configure {} as a new PF", from,
                        to_string(move.to)));
    plan.blast_radius.push_back(fmt::format("another device ({}) takes the place of {} ({})",
                                            to_string(observed), from, to_string(standing.known)));
    return {};
}

// Returns the host without what the moves themselves take out of VMs' XML: PFs that swap slots have
// each other's addresses there.
HostView but_for_ours(Ask const& ask, std::vector<PfMove> const& moves) {
    auto host = ask.host;
    std::set<std::string> ours;
    for (auto const& move : moves)
        for (auto const& attachment : attachments_of_pf(ask.desired, move.from))
            ours.insert(hostdev_alias(attachment.id));
    for (auto& [uuid, vm] : host.hypervisor.vms)
        std::erase_if(vm.config, [&](VmHostdev const& hostdev) {
            return hostdev.alias && ours.contains(*hostdev.alias);
        });
    return host;
}

std::uint16_t vfs_needed(Ask const& ask, PciAddress const& pf) {
    std::uint16_t needed = 0;
    for (auto const& attachment : attachments_of_pf(ask.desired, pf))
        needed = std::max(needed, static_cast<std::uint16_t>(attachment.vf.index + 1));
    auto const managed = ask.desired.pfs.find(pf);
    if (managed == ask.desired.pfs.end()) return needed;
    return std::max(needed, managed->second.spec.num_vfs.value_or(0));
}

// Its attachments need VFs at the new address, which must not be in use.
Result<void> make_vfs(Ask const& ask, PfMove const& move, PfState const& there, RekeyPlan& result) {
    auto const needed = vfs_needed(ask, move.from);
    if (needed > there.info.total_vfs)
        return fail(
            Problem::limit_exceeded,
            fmt::format("{} allows {} VFs, but the stored state of {} needs {}", to_string(move.to),
                        there.info.total_vfs, to_string(move.from), needed),
            "enable more in its firmware: vfctl firmware set");
    if (auto const uses = vf_uses(but_for_ours(ask, result.moves), {}, move.to); !uses.empty())
        return fail(Problem::vf_in_use,
                    fmt::format("VF {} is {}", to_string(uses.front().vf), uses.front().reason),
                    "free it there first");
    if (there.vfs.size() >= needed) return {};
    VFMGR_CHECK(require_free_pci(ask.host));
    raise_for_vfs(result.plan.steps, there);
    result.plan.steps.emplace_back(SetNumVfs{move.to, needed});
    result.makes_vfs = true;
    return {};
}

struct XmlSteps {
    std::vector<Step> out;  // all removals first: PFs that swap slots swap addresses
    std::vector<Step> in;
};

Result<void> change_xml(Ask const& ask, Attachment const& attachment, PfMove const& move,
                        XmlSteps& steps, Plan& plan) {
    auto const* const vm = find_vm(ask.host, attachment.vm_uuid);
    if (!vm) {
        plan.notes.push_back(
            attachment.holder
                ? fmt::format("{} must name the VF by its new address: vfctl attachment show {}",
                              attachment.vm, attachment.id)
                : fmt::format("VM {} is gone", attachment.vm));
        return {};
    }
    if (has_alias(vm->live, attachment))
        return fail(Problem::vf_in_use,
                    fmt::format("VM {} is running with the device of attachment {}, at {}",
                                vm->name, attachment.id, to_string(attachment.vf_pci)),
                    "shut it down first: a device of a running VM can't be moved");
    if (!has_alias(vm->config, attachment)) return {};
    VfId const after{move.to, attachment.vf.index};
    auto const* const vf = find_vf(ask.host, after);
    if (!vf) {
        plan.notes.push_back(
            fmt::format("VM {} gets the address of VF {} once the VF exists, instead of {}",
                        vm->name, to_string(after), to_string(attachment.vf_pci)));
        return {};
    }
    if (vf->pci == attachment.vf_pci) return {};
    plan.blast_radius.push_back(fmt::format("the XML of VM {} names {} instead of {}", vm->name,
                                            to_string(vf->pci), to_string(attachment.vf_pci)));
    steps.out.emplace_back(DetachHostdev{vm->uuid, attachment.id, attachment.vf, attachment.vf_pci,
                                         false, true, vm->name});
    steps.in.emplace_back(AttachHostdev{vm->uuid, attachment.id, after, vf->pci,
                                        attachment.settings.mac, false, true, vm->name});
    return {};
}

Result<void> plan_move(Ask const& ask, PfMove const& move, RekeyPlan& result, XmlSteps& xml) {
    auto const standing = ask.standing(move.from);
    VFMGR_CHECK(check_left(standing, move));
    VFMGR_TRY(PfState const* there, readable_pf(ask.host, move.to));
    VFMGR_CHECK(check_device(standing, move, *there, result.plan));
    VFMGR_CHECK(make_vfs(ask, move, *there, result));
    for (auto const& attachment : attachments_of_pf(ask.desired, move.from))
        VFMGR_CHECK(change_xml(ask, attachment, move, xml, result.plan));
    result.plan.notes.push_back(fmt::format("the stored state of {} moves to {}",
                                            to_string(move.from), to_string(move.to)));
    return {};
}

// The address of an absent VF stays what it was: no VM can start with it, and drift reports it.
void move_attachment(HostView const& host, Attachment& attachment, PciAddress const& to) {
    attachment.vf.pf = to;
    if (attachment.spec.pf) attachment.spec.pf = to;
    if (auto const* const vf = find_vf(host, attachment.vf)) attachment.vf_pci = vf->pci;
}

template <class Value>
void move_key(std::map<PciAddress, Value> const& before, std::map<PciAddress, Value>& after,
              PfMove const& move) {
    if (auto const found = before.find(move.from); found != before.end())
        after[move.to] = found->second;
}

void move_networks(Networks& networks, std::vector<PfMove> const& moves) {
    for (auto& [name, each] : networks)
        for (auto& on : each.network.pfs)
            if (auto const move = std::ranges::find(moves, on.pf, &PfMove::from);
                move != moves.end())
                on.pf = move->to;
}

}  // namespace

Result<RekeyPlan> plan_rekey(HostView const& host, DesiredState const& desired,
                             PciAddress const& from, PciAddress const& to) {
    Ask const ask{host, desired, kept_pfs(desired)};
    if (!ask.is_kept(from))
        return fail(Problem::not_found,
                    fmt::format("no state is stored for a PF at {}", to_string(from)),
                    "vfctl pf list shows the PFs of this host");
    VFMGR_CHECK(require_libvirt(host));
    RekeyPlan result;
    VFMGR_TRY(result.moves, moves_of(ask, {from, to}));
    XmlSteps xml;
    for (auto const& move : result.moves) VFMGR_CHECK(plan_move(ask, move, result, xml));
    if (result.makes_vfs) return result;
    std::ranges::move(xml.out, std::back_inserter(result.plan.steps));
    std::ranges::move(xml.in, std::back_inserter(result.plan.steps));
    return result;
}

DesiredState rekeyed(HostView const& host, DesiredState desired, std::vector<PfMove> const& moves) {
    auto const before = desired;
    for (auto const& [from, to] : moves) {
        desired.pfs.erase(from);
        desired.identities.erase(from);
        desired.firmware_tries.erase(from);
        std::erase_if(desired.quarantine, [&](auto const& one) { return one.first.pf == from; });
    }
    move_networks(desired.networks, moves);
    for (auto const& move : moves) {
        move_key(before.pfs, desired.pfs, move);
        move_key(before.firmware_tries, desired.firmware_tries, move);
        if (auto const* const there = find_pf(host, move.to))
            desired.identities[move.to] = there->info.identity;
        for (auto const& [id, attachment] : before.attachments)
            if (attachment.vf.pf == move.from)
                move_attachment(host, desired.attachments.at(id), move.to);
        for (auto [vf, quarantine] : before.quarantine) {
            if (vf.pf != move.from) continue;
            quarantine.vf.pf = move.to;
            move_attachment(host, quarantine.attachment, move.to);
            desired.quarantine[quarantine.vf] = quarantine;
        }
    }
    return desired;
}

}  // namespace vfmgr
