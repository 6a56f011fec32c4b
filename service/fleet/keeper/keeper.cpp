// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/keeper/keeper.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "service/log.hpp"

namespace vfmgr::fleet {
namespace {

// Without news.
constexpr std::chrono::seconds keeper_looks_again{10};
// News that come one after the other are looked at together.
constexpr std::chrono::milliseconds together{1000};
constexpr std::chrono::seconds keeper_write_max{10};
constexpr std::size_t problems_max = 100;

}  // namespace

Keeper::Keeper(Seams seams) : seams_(std::move(seams)) {}

Keeper::~Keeper() {
    stop();
}

void Keeper::start() {
    thread_ = std::make_unique<OwnThread>([this] { return wait_and_turn(); }, [this] { news(); });
}

void Keeper::stop() {
    thread_.reset();
}

void Keeper::news() {
    std::lock_guard const lock(mutex_);
    news_ = true;
    wake_.notify_all();
}

Deadline Keeper::wait_and_turn() {
    {
        std::unique_lock lock(mutex_);
        wake_.wait_for(lock, keeper_looks_again, [this] { return news_; });
        news_ = false;
    }
    turn();
    return seams_.clock.steady_now() + together;
}

std::vector<std::string> Keeper::problems() const {
    std::lock_guard const lock(mutex_);
    return problems_;
}

void Keeper::turn() {
    auto const fence = seams_.fence();
    // What was known while another one led is not known any more.
    if (fence != led_by_) {
        hosts_.clear();
        contested_.clear();
    }
    led_by_ = fence;
    if (!look()) return;
    keep_active_hosts();
    find_missing();
    if (fence && take_answers(*fence) && grant(*fence) && judge(*fence) && note_given_up(*fence) &&
        free_leaving(*fence) && note_confirmed(*fence))
        send(*fence);
    note_problems();
}

// False: there is nothing to do, or nothing can be done without etcd.
bool Keeper::look() {
    look_ = {seams_.registry.state(), seams_.inventory(), seams_.reaches()};
    auto const& state = *look_.state;
    if (state.stale_since || !state.identities) return false;
    if (state.blocks != fleet_blocks_ || state.claims != fleet_claims_) {
        fleet_ = snapshot_of(state);
        parts_ = by_host(fleet_);
        fleet_blocks_ = state.blocks;
        fleet_claims_ = state.claims;
        ++fleets_;
    }
    fleet_.revision = static_cast<std::uint64_t>(state.revision);
    return true;
}

Snapshot const& Keeper::part_of(std::string const& host) {
    auto& part = parts_[host];
    part.revision = fleet_.revision;
    return part;
}

// One that leaves is to have nothing.
Identities Keeper::desired_of(std::string const& name) {
    auto const* const record = find_record(look_.state->hosts, name);
    auto desired = desired_identities(part_of(name), name);
    if (!record || !record->record.leaving) return desired;
    Identities nothing;
    nothing.generation = desired.generation;
    return nothing;
}

void Keeper::keep_active_hosts() {
    auto const& records = *look_.state->hosts;
    std::erase_if(hosts_, [&](auto const& entry) {
        auto const found = records.find(entry.first);
        return found == records.end() || found->second.record.state != FleetHostState::active ||
               found->second.create_revision != entry.second.joined;
    });
    for (auto const& [name, stored] : records) {
        if (stored.record.state != FleetHostState::active) continue;
        auto& host = hosts_[name];
        host.joined = stored.create_revision;
        note_changes(name, host);
    }
}

// A host that was away, or shows other identities than it last said, is read again.
void Keeper::note_changes(std::string const& name, Host& host) {
    auto const reach = look_.reaches->find(name);
    bool const away = reach == look_.reaches->end() || reach->second.unreachable_since.has_value();
    if (host.away && !away) host.has.reset();
    host.away = away;
    auto const* const part = look_.view->find(name);
    if (!part) return;
    auto const& shown = part->documents.identities;
    if (shown != host.observed && host.has && shown->generation != host.has->document.generation)
        host.has.reset();
    host.observed = shown;
    // What was in use may be so no longer.
    if (host.refused_with && part->documents.attachments != host.refused_with) {
        host.refused_with.reset();
        host.again = {};
    }
}

void Keeper::note_problems() {
    std::vector<std::string> problems;
    for (auto const& [key, one] : short_) problems.push_back(one.sentence);
    for (auto const& [name, host] : hosts_)
        if (!host.trouble.empty())
            problems.push_back(
                fmt::format("host {} does not take the identities that it is to "
                            "have: {}",
                            name, host.trouble));
    if (problems.size() > problems_max) problems.resize(problems_max);
    std::lock_guard const lock(mutex_);
    problems_ = std::move(problems);
}

Deadline Keeper::write_deadline() const {
    return seams_.clock.steady_now() + keeper_write_max;
}

}  // namespace vfmgr::fleet
