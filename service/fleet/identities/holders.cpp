// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/identities/holders.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "service/fleet/identities/moves.hpp"

namespace vfmgr::fleet {
namespace {

struct HeldHere {
    std::string const* host = nullptr;   // never nullptr
    HeldIdentity const* held = nullptr;  // never nullptr
};
using HeldByIdentity = std::map<Identity, std::vector<HeldHere>>;

HeldByIdentity by_identity(HeldByHost const& all) {
    HeldByIdentity sorted;
    for (auto const& [host, identities] : all)
        for (auto const& held : identities) sorted[held.identity].push_back({&host, &held});
    return sorted;
}

// A snapshot of a large fleet has tens of thousands of blocks and claims.
class Records {
  public:
    explicit Records(Snapshot const& fleet) {
        for (auto const& kept : fleet.blocks) blocks_.push_back(&kept.block);
        std::ranges::sort(blocks_, {}, [](Block const* block) { return block->first; });
        for (auto const& kept : fleet.claims) claims_.emplace(kept.claim.identity, &kept.claim);
    }
    [[nodiscard]] Block const* block(Identity const& identity) const {
        auto const after = std::ranges::upper_bound(
            blocks_, identity, {}, [](Block const* block) { return block->first; });
        if (after == blocks_.begin() || !(*std::prev(after))->contains(identity)) return nullptr;
        return *std::prev(after);
    }
    [[nodiscard]] Claim const* claim(Identity const& identity) const {
        auto const found = claims_.find(identity);
        return found == claims_.end() ? nullptr : found->second;
    }
    // The same as owner_of().
    [[nodiscard]] std::string owner(Identity const& identity) const {
        if (auto const* const one = claim(identity))
            return one->state == ClaimState::held ? one->host : std::string();
        auto const* const one = block(identity);
        return one ? one->host : std::string();
    }

  private:
    std::vector<Block const*> blocks_;
    std::map<Identity, Claim const*> claims_;
};

// The host that may still have it: the owner, or the one that is to give it up.
std::string rightful(Records const& records, Identity const& identity) {
    auto const* const claim = records.claim(identity);
    if (claim && claim->state == ClaimState::giving_up) return claim->from;
    return records.owner(identity);
}

std::optional<FindingKind> finding_of(Records const& records, Identity const& identity,
                                      std::vector<HeldHere> const& all) {
    auto const& first = *all.front().host;
    for (auto const& here : all)
        if (*here.host != first) return FindingKind::contested;
    if (first == rightful(records, identity)) return std::nullopt;
    bool const known = records.claim(identity) || records.block(identity);
    return known ? FindingKind::contested : FindingKind::foreign;
}

std::string why(Records const& records, Identity const& identity) {
    if (auto const* const claim = records.claim(identity)) switch (claim->state) {
            case ClaimState::held:
                return fmt::format("{} has claimed it", claim->host);
            case ClaimState::giving_up:
                return fmt::format("{} is to give it up{}{}", claim->from,
                                   claim->host.empty() ? "" : " for ", claim->host);
            case ClaimState::given_up:
                return fmt::format("{} has given it up for {}", claim->from, claim->host);
        }
    if (auto const* const block = records.block(identity))
        return fmt::format("it is in a block of {}", block->host);
    return "it is in no block and no claim";
}

HolderState state_of(Records const& records, Identity const& identity) {
    auto const* const claim = records.claim(identity);
    if (!claim || claim->state == ClaimState::held) return HolderState::held;
    return claim->state == ClaimState::giving_up ? HolderState::giving_up : HolderState::given_up;
}

void add_source(Holder& row, Records const& records) {
    if (auto const* const claim = records.claim(row.identity)) {
        row.source = HolderSource::claim;
        row.certificate = row.host == claim->host   ? claim->public_key
                          : row.host == claim->from ? claim->from_public_key
                                                    : std::optional<std::string>();
        return;
    }
    auto const* const block = records.block(row.identity);
    if (!block) return;
    row.source = HolderSource::block;
    if (row.host == block->host) row.certificate = block->public_key;
}

}  // namespace

std::vector<IdentityFinding> findings(Snapshot const& fleet, HeldByHost const& held) {
    Records const records(fleet);
    std::vector<IdentityFinding> all;
    for (auto const& [identity, here] : by_identity(held)) {
        auto const kind = finding_of(records, identity, here);
        if (!kind) continue;
        IdentityFinding finding{*kind, identity, {}, records.owner(identity), {}};
        std::vector<std::string> vms;
        for (auto const& one : here) {
            if (finding.hosts.empty() || finding.hosts.back() != *one.host)
                finding.hosts.push_back(*one.host);
            vms.push_back(fmt::format("VM {} on {}", one.held->vm, *one.host));
        }
        finding.sentence = fmt::format("{} is held by {}; {}", described(identity),
                                       fmt::join(vms, " and "), why(records, identity));
        all.push_back(std::move(finding));
    }
    return all;
}

std::vector<Holder> holders(Snapshot const& fleet, HeldByHost const& held) {
    Records const records(fleet);
    auto const sorted = by_identity(held);
    std::vector<Holder> rows;
    for (auto const& [identity, here] : sorted) {
        auto const kind = finding_of(records, identity, here);
        auto const state = !kind                             ? state_of(records, identity)
                           : *kind == FindingKind::contested ? HolderState::contested
                                                             : HolderState::foreign;
        for (auto const& one : here) {
            Holder row{identity, *one.host, one.held->vm, {}, one.held->since, {}, {}, state};
            if (!one.held->vm_uuid.empty()) row.vm_uuid = one.held->vm_uuid;
            add_source(row, records);
            rows.push_back(std::move(row));
        }
    }
    for (auto const& [claim, revision] : fleet.claims) {
        if (sorted.contains(claim.identity)) continue;
        auto const state = claim.state == ClaimState::held ? HolderState::reserved
                                                           : state_of(records, claim.identity);
        auto const& host = claim.state == ClaimState::giving_up ? claim.from : claim.host;
        Holder row{claim.identity, host, {}, {}, claim.at, {}, {}, state};
        if (!claim.vm.empty()) row.vm_uuid = claim.vm;
        add_source(row, records);
        rows.push_back(std::move(row));
    }
    std::ranges::sort(rows, {}, [](Holder const& row) { return std::tie(row.identity, row.host); });
    return rows;
}

}  // namespace vfmgr::fleet
