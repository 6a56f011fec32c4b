// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/documents.hpp"

#include <algorithm>
#include <iterator>

#include "vfmgr/engine/identities.hpp"
#include "vfmgr/engine/links.hpp"
#include "vfmgr/engine/pfs.hpp"
#include "vfmgr/engine/revision.hpp"
#include "vfmgr/plan/free_vfs.hpp"

namespace vfmgr {
namespace {

// Saves what is new or differs, and erases what is gone.
template <class Key, class Value, class Same, class Save>
void compare(std::map<Key, Value> const& before, std::map<Key, Value> const& after,
             std::vector<Key>& erase, Same const& same, Save const& save) {
    for (auto const& [key, value] : before)
        if (!after.contains(key)) erase.push_back(key);
    for (auto const& [key, value] : after) {
        auto const had = before.find(key);
        if (had == before.end() || !same(had->second, value)) save(key, value);
    }
}

template <class Member>
auto same_as(Member member) {
    return [member](auto const& a, auto const& b) { return a.*member == b.*member; };
}

template <class Value>
auto save_in(std::vector<Value>& saved, std::uint64_t revision) {
    return [&saved, revision](std::string const&, Value value) {
        value.revision = revision;
        saved.push_back(std::move(value));
    };
}

// What operations change under claims: PFs and RDMA links.
void add_claimed(Batch& batch, DesiredState const& before, DesiredState const& after,
                 std::uint64_t revision) {
    compare(before.pfs, after.pfs, batch.erase_pfs, same_as(&DesiredPf::spec),
            [&](PciAddress const& pci, DesiredPf pf) {
                pf.revision = revision;
                batch.save_pfs.emplace_back(pci, std::move(pf));
            });
    compare(before.rdma_links, after.rdma_links, batch.erase_rdma_links,
            same_as(&DesiredRdmaLink::link), save_in(batch.save_rdma_links, revision));
}

}  // namespace

ClaimKeys claims_of(Snapshot const& now, ReplaceDesired const& command) {
    ClaimKeys keys;
    auto const add_link = [&](std::string const& name, std::string const& netdev) {
        keys.merge(link_keys(*now.host, name, netdev));
    };
    for (auto const& [text, spec] : command.document.pfs)
        if (auto const pci = PciAddress::parse(text)) keys.insert(*pci);
    for (auto const& [name, spec] : command.document.rdma_links) add_link(name, spec.ifname);
    if (command.unnamed == Unnamed::keep) return keys;
    for (auto const& [pci, pf] : now.desired->pfs) keys.insert(pci);
    for (auto const& [name, each] : now.desired->rdma_links) add_link(name, each.link.ifname);
    return keys;
}

bool changes_host(DesiredState const& before, DesiredPlan const& planned) {
    return !planned.plan.steps.empty() || before.pfs != planned.after.pfs ||
           before.rdma_links != planned.after.rdma_links;
}

void add_unclaimed(Batch& batch, DesiredState const& before, DesiredState const& after,
                   std::uint64_t revision) {
    compare(before.networks, after.networks, batch.erase_networks,
            same_as(&DesiredNetwork::network), save_in(batch.save_networks, revision));
    compare(before.pools, after.pools, batch.erase_pools, same_as(&DesiredPool::pool),
            save_in(batch.save_pools, revision));
    if (before.handed_out.identities != after.handed_out.identities)
        batch.save_handed_out = {after.handed_out.identities, revision};
}

Result<Batch> Documents::perform(Operation& operation, ReplaceDesired const& command,
                                 IfMatch const& if_match, std::uint64_t revision) {
    std::vector<VfSpec> given;
    for (auto const& [pci, spec] : command.document.pfs)
        std::ranges::move(settings_of_free(spec), std::back_inserter(given));
    operations_.pledge(operation, std::move(given));
    auto const desired = seams().control.snapshot().desired;
    VFMGR_CHECK(check_revision(revision_of(document_of(*desired)), "the desired state", if_match));
    VFMGR_TRY(HostView const host, observe_for(seams(), std::nullopt));
    VFMGR_TRY(auto const planned,
              plan_desired(host, *desired, trusted_netdevs_, command.document, command.unnamed));
    VFMGR_CHECK(operations_.perform(operation, planned.plan, OnFailure::undo));
    Batch claimed;
    add_claimed(claimed, *desired, planned.after, revision);
    for (auto const& [pci, pf] : claimed.save_pfs) {
        claimed.save_events.push_back(
            configured_event(pci, pf.spec, operation, seams().clock.now()));
        keep_identity(claimed, host.kernel, *desired, pci);
    }
    for (auto const& pci : claimed.erase_pfs)
        claimed.save_events.push_back(forgotten_event(pci, operation, seams().clock.now()));
    return claimed;
}

// Networks, pools and identities change without a claim, so they are judged once more, as they are
// when the end is stored.
void Documents::apply(Operation& operation, ReplaceDesired const& command,
                      IfMatch const& if_match) {
    auto const claim = operations_.claim(operation, claims_of(seams().control.snapshot(), command));
    if (!claim) return operations_.finish(operation, fail(claim.error()), {});
    auto const revision = operations_.next_revision();
    auto const claimed = perform(operation, command, if_match, revision);
    if (!claimed) return operations_.finish(operation, fail(claimed.error()), {});
    operations_.finish(operation, [&](DesiredState const& now) -> Operations::End {
        auto const host = seams().control.snapshot().host;
        auto planned =
            plan_desired(*host, now, trusted_netdevs_, command.document, command.unnamed);
        if (!planned) {
            planned.error().detail += "; left behind: the document's PFs and RDMA links";
            return {Result<void>(fail(planned.error())), *claimed};
        }
        auto batch = *claimed;
        add_unclaimed(batch, now, planned->after, revision);
        return {Result<void>(), batch};
    });
}

}  // namespace vfmgr
