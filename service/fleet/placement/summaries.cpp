// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/placement/summaries.hpp"

#include <algorithm>
#include <set>

#include "api/types/identities.hpp"
#include "api/types/json.hpp"
#include "api/types/pool.hpp"
#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/select.hpp"

namespace vfmgr::fleet {
namespace {

// A document that this version can't read is left out: whatever it selects can't be had there.
template <class T, class Facts>
std::vector<T> read_items(Part<Facts> const& part) {
    std::vector<T> all;
    for (auto const& item : part.items) {
        auto const document = parse_json(item.text);
        if (!document) continue;
        if (auto value = from_json_document<T>(*document, UnknownKeys::ignored))
            all.push_back(std::move(*value));
    }
    return all;
}

void set_state(HostSummary& summary, HostState state, Statement const* said) {
    summary.state = state;
    if (!said) return;
    summary.state_since = said->at;
    summary.state_reason = said->reason.empty() ? said->by : said->by + ": " + said->reason;
}

// In the order of how much it matters.
void judge_state(HostSummary& summary, HostPart const& part, HostRecord const& record) {
    summary.stale = part.stale || part.documents.pfs->observed_at == Time{} ||
                    part.documents.reservations->observed_at == Time{};
    summary.as_of = part.stale ? part.stale->since : part.documents.pfs->observed_at;
    if (record.fenced) return set_state(summary, HostState::fenced, &*record.fenced);
    if (record.state == FleetHostState::quarantined) {
        set_state(summary, HostState::quarantined, nullptr);
        summary.state_reason = record.reason;
        return;
    }
    if (record.state == FleetHostState::joining ||
        (part.stale && part.stale->why == StaleWhy::unreachable))
        return set_state(summary, HostState::unreachable, nullptr);
    if (record.cordoned) set_state(summary, HostState::cordoned, &*record.cordoned);
}

// What a pool's selectors compare of a PF.
PfInfo info_of(PfFacts const& facts) {
    PfInfo info;
    info.pci = facts.pci;
    info.driver = facts.driver;
    info.link_layer = facts.link_layer.value_or(LinkLayer::ethernet);
    info.numa_node = facts.numa_node;
    info.rdma_device = facts.rdma_device;
    info.pci_ids = facts.pci_ids;
    info.pcie_root = facts.pcie_root;
    return info;
}

bool is_managed(PfFacts const& pf) {
    return pf.mode && *pf.mode != PfMode::observe;
}

// As the host judges it when it reserves.
bool gives_vfs(PfFacts const& pf) {
    return !pf.stale && !pf.stuck && pf.link_layer &&
           (pf.standing == Standing::here || pf.standing == Standing::driver_unbound);
}

std::vector<std::uint16_t> free_of(PfFacts const& pf, Part<VfFacts> const& vfs,
                                   std::set<VfId> const& reserved) {
    std::vector<std::uint16_t> free;
    auto const [begin, end] = vfs_of(pf.pci, vfs);
    for (auto at = begin; at < end; ++at) {
        auto const& vf = vfs.items[at].facts;
        if (vf.state == VfStatus::free && !reserved.contains(vf.id)) free.push_back(vf.id.index);
    }
    return free;
}

RailPf rail_pf(PfFacts const& pf, std::vector<std::uint16_t> const& free,
               std::vector<Network> const& networks, std::vector<Pool> const& pools) {
    RailPf rail;
    rail.place.address = pf.pci;
    rail.place.numa_node = pf.numa_node;
    rail.rail = rail_of(pf.labels, networks, pf.pci);
    rail.link_layer = *pf.link_layer;
    rail.link_up = pf.carrier;
    rail.free_vfs = static_cast<std::uint16_t>(free.size());
    rail.networks = pf.networks;
    auto const info = info_of(pf);
    PfSpec spec;
    spec.labels = pf.labels;
    for (auto const& pool : pools) {
        if (mismatch(pool.select, info, &spec)) continue;
        auto const held = std::ranges::count_if(
            free, [&](auto index) { return holds_vf(pool.select, {pf.pci, index}); });
        rail.pools.push_back({pool.name, static_cast<std::uint16_t>(held)});
    }
    return rail;
}

IdentitiesLeft left_of(IdentitiesPart const& identities) {
    IdentitiesLeft left;
    auto const document = parse_json(identities.text);
    if (!document) return left;
    auto const view = from_json_document<IdentitiesView>(*document, UnknownKeys::ignored);
    if (!view || !view->free) return left;
    left.macs = view->free->macs;
    left.guids = view->free->guids;
    for (auto const& [network, count] : view->free->addresses) left.addresses[network] = count;
    return left;
}

}  // namespace

HostSummary summary_of(HostPart const& part, HostRecord const& record) {
    auto const& documents = part.documents;
    HostSummary summary;
    summary.name = part.host.name;
    summary.rack = record.rack.value_or("");
    summary.labels = record.labels;
    judge_state(summary, part, record);
    for (auto const& partition : record.partitions)
        summary.partitions[partition.id] = partition.gpus;
    std::set<VfId> reserved;
    for (auto const& one : documents.reservations->items)
        reserved.insert(one.facts.vfs.begin(), one.facts.vfs.end());
    auto const networks = read_items<Network>(*documents.networks);
    auto const pools = read_items<Pool>(*documents.pools);
    std::uint32_t free_in_all = 0;
    for (auto const& [text, pf] : documents.pfs->items) {
        if (!is_managed(pf)) continue;
        auto const [begin, end] = vfs_of(pf.pci, *documents.vfs);
        summary.vfs += static_cast<std::uint32_t>(end - begin);
        if (!gives_vfs(pf)) continue;
        auto const free = free_of(pf, *documents.vfs, reserved);
        free_in_all += static_cast<std::uint32_t>(free.size());
        summary.rails.push_back(rail_pf(pf, free, networks, pools));
    }
    summary.used = summary.vfs - free_in_all;
    summary.left = left_of(*documents.identities);
    return summary;
}

std::vector<HostSummary const*> Summaries::of(InventoryView const& view, State const& state) {
    std::erase_if(kept_, [&](auto const& each) { return !state.hosts->contains(each.first); });
    std::vector<HostSummary const*> all;
    all.reserve(view.hosts.size());
    for (auto const& part : view.hosts) {
        auto const* const record = find_record(state.hosts, part->host.name);
        if (!record) continue;
        auto& kept = kept_[part->host.name];
        if (kept.part != part || kept.mod_revision != record->mod_revision) {
            kept = {part, record->mod_revision, summary_of(*part, record->record)};
            ++made_;
        }
        all.push_back(&kept.summary);
    }
    return all;
}

}  // namespace vfmgr::fleet
