// SPDX-License-Identifier: Apache-2.0
// What the keeper writes to etcd. Each write is decided from the newest state, by a replica that
// leads, and is whole by itself: a leader that dies after any of them leaves nothing half done.
#include <fmt/format.h>

#include <algorithm>

#include "service/fleet/keeper/admin_acts.hpp"
#include "service/fleet/keeper/keeper.hpp"
#include "service/fleet/membership.hpp"
#include "service/log.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::size_t blocks_a_turn = 64;

std::string short_sentence(std::string const& host, KindUse const& use) {
    auto const free = use.use.in_blocks - std::min(use.use.in_blocks, use.use.used);
    return fmt::format(
        "the fleet's ranges have no more {} for host {}, which has {} left for {} VFs "
        "that may need one: add ranges: vfctl identities set",
        described(use), host, free, use.use.vfs - std::min(use.use.vfs, use.use.attached));
}

// The host may still have it: the owner, or who is to give it up.
std::string may_have(Snapshot const& fleet, Identity const& identity) {
    auto const* const kept = claim_of(fleet, identity);
    if (kept && kept->claim.state == ClaimState::giving_up) return kept->claim.from;
    return owner_of(fleet, identity);
}

}  // namespace

// --- blocks ---

std::string Keeper::short_key(std::string const& host, KindUse const& use) {
    return fmt::format("{} {}", host, described(use));
}

void Keeper::find_missing() {
    auto const& identities = *look_.state->identities;
    std::map<std::string, Short> still;
    for (auto& [name, host] : hosts_) {
        auto const* const part = look_.view->find(name);
        auto const* const record = find_record(look_.state->hosts, name);
        if (!part || host.away || !record || record->record.fenced || record->record.leaving) {
            host.missing.clear();
            continue;
        }
        auto const& documents = part->documents;
        Judged const now{documents.pfs, documents.attachments, documents.networks, fleets_,
                         identities.mod_revision};
        if (host.judged != now)
            host.missing =
                missing_of(part->documents, identities.record.ranges, part_of(name), name);
        host.judged = now;
        for (auto const& use : host.missing)
            if (auto const found = short_.find(short_key(name, use)); found != short_.end())
                still.insert(*found);
    }
    short_ = std::move(still);
}

bool Keeper::grant(Revision fence) {
    std::size_t budget = blocks_a_turn;
    for (auto& [name, host] : hosts_) {
        for (auto const& use : host.missing)
            if (!grant(fence, name, use, budget)) return false;
        if (budget == 0) break;
    }
    // More of them are for the next turn.
    if (budget == 0) news();
    return look();
}

// Blocks of one kind until the host has enough.
bool Keeper::grant(Revision fence, std::string const& name, KindUse const& use,
                   std::size_t& budget) {
    auto const* const part = look_.view->find(name);
    auto const key = short_key(name, use);
    Short const now{short_sentence(name, use), fleets_, look_.state->identities->mod_revision};
    // There are none, and nothing has changed since that was found.
    if (auto const found = short_.find(key); found != short_.end() && found->second == now)
        return true;
    bool enough = false;
    bool none_left = false;
    while (budget > 0 && !enough && !none_left) {
        MoveAct const act{new_act(), seams_.clock.now()};
        auto const decide = [&](State const& state) -> Result<std::optional<GuardedTransaction>> {
            auto const* const host = find_record(state.hosts, name);
            if (!host || host->record.state != FleetHostState::active || host->record.leaving ||
                !state.identities) {
                enough = true;
                return std::nullopt;
            }
            auto const fleet = snapshot_of(state);
            auto const missing =
                missing_of(part->documents, state.identities->record.ranges, fleet, name);
            enough = std::ranges::none_of(missing, [&](KindUse const& one) {
                return one.kind == use.kind && one.network == use.network;
            });
            if (enough) return std::nullopt;
            auto block = grant_block(state, fleet, {use.kind, use.network, name}, act);
            none_left = !block.has_value();
            return block;
        };
        if (!seams_.writer.write_as_scheduler(fence, decide, write_deadline())) return false;
        --budget;
    }
    if (!none_left) {
        if (enough) short_.erase(key);
        return true;
    }
    if (short_.insert_or_assign(key, now).second)
        log(Severity::warning, "a host gets no more identities",
            {{"host", name}, {"detail", now.sentence}});
    return true;
}

// --- what hosts have given up ---

bool Keeper::note_given_up(Revision fence) {
    for (auto const& kept : fleet_.claims) {
        auto const& claim = kept.claim;
        if (claim.state != ClaimState::giving_up) continue;
        auto const* const record = find_record(look_.state->hosts, claim.from);
        std::optional<GivenUp> evidence;
        if (record && record->record.fenced) {
            evidence = FencedHost{claim.from, static_cast<std::uint64_t>(record->mod_revision)};
        } else if (auto const host = hosts_.find(claim.from);
                   host != hosts_.end() && host->second.has) {
            auto const& document = host->second.has->document;
            auto const generation = document.generation.value_or(0);
            if (generation >= kept.revision && !may_use(document, claim.identity))
                evidence = Acknowledged{claim.from, generation};
        }
        if (!evidence) continue;
        MoveAct const act{new_act(), seams_.clock.now()};
        auto const decide = [&](State const& state) -> Result<std::optional<GuardedTransaction>> {
            auto const fleet = snapshot_of(state);
            auto const transition = fleet::note_given_up(fleet, claim.identity, *evidence, act);
            // It was aborted meanwhile, or begun anew.
            if (!transition) return std::nullopt;
            return transaction_of(*transition, act);
        };
        if (!seams_.writer.write_as_scheduler(fence, decide, write_deadline())) return false;
    }
    return look();
}

// In parts that fit a transaction each: whoever leads goes on with what is left.
bool Keeper::free_leaving(Revision fence) {
    for (auto const& [name, stored] : *look_.state->hosts) {
        auto const host = hosts_.find(name);
        bool const known = host != hosts_.end() && host->second.has;
        if (!gave_up_all(stored, known ? &host->second.has->document : nullptr)) continue;
        bool rest = true;
        auto const decide = [&, name = name, seen = stored.mod_revision](
                                State const& state) -> Result<std::optional<GuardedTransaction>> {
            auto const* const now = find_record(state.hosts, name);
            auto part = now && now->mod_revision == seen ? free_of_host(state, name) : std::nullopt;
            rest = part.has_value();
            return part;
        };
        while (rest)
            if (!seams_.writer.write_as_scheduler(fence, decide, write_deadline())) return false;
    }
    return look();
}

// By the mark a host whose store was restored is recognised, by the next leader too.
bool Keeper::note_confirmed(Revision fence) {
    for (auto const& [name, host] : hosts_) {
        auto const* const mark = find_record(look_.state->marks, name);
        if (!mark || !host.has || host.confirmed <= mark->record.generation) continue;
        auto const act = new_act();
        auto const decide = [&](State const& state) -> Result<std::optional<GuardedTransaction>> {
            return mark_generation(state, name, host.confirmed, act);
        };
        if (!seams_.writer.write_as_scheduler(fence, decide, write_deadline())) return false;
    }
    return look();
}

// --- hosts that have what they should not ---

bool Keeper::quarantine(Revision fence, std::string const& name, std::string const& reason) {
    auto const act = new_act();
    bool done = false;
    auto const decide = [&](State const& state) -> Result<std::optional<GuardedTransaction>> {
        auto const* const record = find_record(state.hosts, name);
        done = record && record->record.state == FleetHostState::active;
        if (!done) return std::nullopt;
        VFMGR_TRY(auto guarded, quarantine_host(state, name, reason, act));
        return std::optional(std::move(guarded));
    };
    if (!seams_.writer.write_as_scheduler(fence, decide, write_deadline())) return false;
    if (done && seams_.quarantined) seams_.quarantined(name, reason);
    return true;
}

// Why the host can't be what it was; empty: it can, as far as is known.
Result<std::string> Keeper::contradiction_of(std::string const& name, Host& host) {
    auto const* const mark = find_record(look_.state->marks, name);
    auto const confirmed = std::max(host.confirmed, mark ? mark->record.generation : 0);
    auto const& has = host.has->document;
    auto const generation = has.generation.value_or(0);
    auto const judged = difference(desired_of(name), has, confirmed);
    if (!judged.quarantines()) {
        host.confirmed = std::max(host.confirmed, generation);
        return std::string();
    }
    if (judged.generation == Generation::ahead) {
        // Its document may be of a leader that knew more than this replica does yet.
        VFMGR_TRY(auto const read,
                  seams_.etcd.range({.key = std::string(keys::identities)}, write_deadline()));
        if (generation <= static_cast<std::uint64_t>(read.revision)) return std::string();
        return fmt::format(
            "its identities are of generation {}, and etcd is at {}: etcd was "
            "restored from a backup. Restore what is newer, or have the host leave "
            "and join again",
            generation, read.revision);
    }
    if (generation < confirmed)
        return fmt::format(
            "its identities are of generation {}, and it has confirmed {}: its store "
            "is older than it was",
            generation, confirmed);
    return fmt::format("its identities of generation {} are not as the fleet wrote them: {}",
                       generation, judged.sentences.front());
}

// Compares what each host has with what it is to have.
bool Keeper::judge(Revision fence) {
    find_suspects();
    for (auto at = hosts_.begin(); at != hosts_.end();) {
        auto& [name, host] = *at;
        auto const reason =
            host.has && !host.asked ? contradiction_of(name, host) : Result<std::string>("");
        if (!reason || (!reason->empty() && !quarantine(fence, name, *reason))) return false;
        at = reason->empty() ? std::next(at) : hosts_.erase(at);
    }
    return look();
}

// The inventory may be older than etcd: who had an identity before it moved may still be shown with
// it. So each host is asked again before anything follows.
void Keeper::find_suspects() {
    if (look_.view == searched_ && fleets_ == searched_in_) return;
    searched_ = look_.view;
    searched_in_ = fleets_;
    for (auto& [name, host] : hosts_) host.suspects.clear();
    auto const found = contested_of(fleet_, look_.state->identities->record.ranges, *look_.view);
    std::erase_if(contested_, [&](auto const& entry) {
        return std::ranges::find(found, entry.first, &IdentityFinding::identity) == found.end();
    });
    for (auto const& finding : found) {
        auto const rightful = may_have(fleet_, finding.identity);
        for (auto const& name : finding.hosts) {
            auto const host = hosts_.find(name);
            if (name == rightful || host == hosts_.end()) continue;
            if (auto const known = contested_.find(finding.identity);
                known != contested_.end() && known->second.contains(name))
                continue;
            for (auto const& held : held_by(look_.view->find(name)->documents))
                if (held.identity == finding.identity)
                    host->second.suspects.push_back(
                        {finding.identity, held.attachment, finding.sentence});
        }
    }
}

}  // namespace vfmgr::fleet
