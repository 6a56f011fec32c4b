// SPDX-License-Identifier: Apache-2.0
// A move in sentences.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "service/fleet/drain/move.hpp"

namespace vfmgr::fleet {
namespace {

std::string listed_identities(IdentityList const& all) {
    std::vector<std::string> texts;
    for (auto const& mac : all.macs) texts.push_back("MAC " + vfmgr::to_string(mac));
    for (auto const& guid : all.guids) texts.push_back("GUID " + vfmgr::to_string(guid));
    for (auto const& [network, address] : all.addresses)
        texts.push_back(
            fmt::format("address {} of network {}", vfmgr::to_string(address), network));
    return fmt::format("{}", fmt::join(texts, ", "));
}

void add_kept(std::vector<std::string>& residue, Move const& move, MoveEnd const& end) {
    if (end.vf_kept)
        residue.push_back(
            fmt::format("a VF of {} may be kept on {}: reservation {}, which expires after a day",
                        vfmgr::to_string(end.pf), end.host, reservation_of(move)));
}

}  // namespace

std::vector<std::string> sentences_of(Move const& move) {
    auto const& from = move.source.host;
    auto const& to = move.target.host;
    std::vector<std::string> plan;
    if (move.running)
        plan.push_back(
            fmt::format("all queue pairs of VM {} over attachment {} die: RDMA connections do not "
                        "move, and what "
                        "runs in the VM must connect again",
                        move.vm, move.source.attachment));
    plan.push_back(fmt::format("{} keeps a VF of {} on rail {}", to,
                               vfmgr::to_string(move.target.pf), move.rail));
    plan.push_back(fmt::format("{} detaches attachment {} from VM {} and resets its VF", from,
                               move.source.attachment, move.vm));
    if (move.identities != IdentityList{})
        plan.push_back(fmt::format("{} gives up {}, then {} has it", from,
                                   listed_identities(move.identities), to));
    plan.push_back(fmt::format("VM {} moves to {}: its orchestrator does that, or virsh migrate",
                               move.vm, to));
    plan.push_back(fmt::format("{} attaches the kept VF to it, under the same names", to));
    if (move.running)
        plan.push_back(
            fmt::format("RDMA from VM {} is proved on {}; until then the attachment "
                        "counts as not proved",
                        move.vm, to));
    return plan;
}

std::vector<std::string> residue_of(Move const& move) {
    std::vector<std::string> residue;
    auto const& from = move.source.host;
    auto const& to = move.target.host;
    if (move.stage == MoveStage::failed) {
        residue.push_back(fmt::format("VM {} is on {}", move.vm, move.vm_at_target ? to : from));
        for (auto const* const end : {&move.source, &move.target})
            if (!end->attachment.empty())
                residue.push_back(fmt::format("attachment {} stands on {}{}", end->attachment,
                                              end->host, move.running ? ", not proved" : ""));
        if (move.source.attachment.empty() && move.target.attachment.empty())
            residue.push_back(fmt::format("VM {} has no VF for rail {}", move.vm, move.rail));
        if (move.identities != IdentityList{})
            residue.push_back(
                listed_identities(move.identities) +
                (move.identities_at == IdentitiesAt::source   ? fmt::format(": {} has it", from)
                 : move.identities_at == IdentitiesAt::target ? fmt::format(": {} has it", to)
                                                              : " is on its way: nobody has it"));
    }
    add_kept(residue, move, move.source);
    add_kept(residue, move, move.target);
    return residue;
}

}  // namespace vfmgr::fleet
