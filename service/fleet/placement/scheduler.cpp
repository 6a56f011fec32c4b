// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/placement/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/os/random.hpp"
#include "service/fleet/membership.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::chrono::seconds write_patience{15};
constexpr std::chrono::seconds election_news{5};
constexpr std::chrono::milliseconds one_answer{10'000};
constexpr std::chrono::milliseconds backoff_first{100};
constexpr std::chrono::milliseconds backoff_most{2'000};
constexpr std::size_t chosen_name_bytes = 4;

Error other_schedules() {
    return {Problem::unavailable, "this replica does not schedule any more",
            "send the request again: it goes to the one that does"};
}

Error lost(std::string const& name, std::string const& host, Error const& why) {
    return {Problem::timed_out,
            fmt::format("whether host {} keeps reservation {} is not known: {}", host, name,
                        detail_with_causes(why)),
            fmt::format("send the same request again, which finds out; or: vfctl reservation "
                        "release {}",
                        name)};
}

std::vector<VfsOfPf> by_pf(std::vector<VfId> const& vfs) {
    std::map<PciAddress, std::uint16_t> counts;
    for (auto const& vf : vfs) ++counts[vf.pf];
    std::vector<VfsOfPf> all;
    for (auto const& [pf, count] : counts) all.push_back({pf, count});
    return all;
}

}  // namespace

// A request under way.
struct Scheduler::Attempt {
    Principal const& who;
    FleetReservationSpec spec;
    Revision fence = 0;
    std::string act{};              // of the record that it has written; empty: none
    std::vector<Ranked> refused{};  // hosts that were asked and refused
};

Scheduler::Scheduler(SchedulerSeams seams) : seams_(std::move(seams)) {}
Scheduler::~Scheduler() {
    stop();
}

Result<Revision> Scheduler::leading() {
    auto const fence = seams_.fence();
    if (!fence) return fail(other_schedules());
    VFMGR_CHECK(follow_fence(*fence));
    return *fence;
}

// What schedulers before this one have decided, and their hosts have not reported, is taken too.
// They have written it before this one was elected, or never will.
Result<void> Scheduler::follow_fence(Revision fence) {
    auto const knows_all = [&] {
        std::lock_guard const lock(mutex_);
        return followed_fence_ == fence;
    };
    if (knows_all()) return {};
    if (!seams_.wait_for(fence, seams_.timing.clock.steady_now() + election_news))
        return fail(Problem::unavailable, "this replica was elected and still reads etcd",
                    "send the request again in a few seconds");
    auto const state = seams_.state();
    std::lock_guard const lock(mutex_);
    if (followed_fence_ == fence) return {};
    followed_fence_ = fence;
    asked_at_.clear();
    for (auto const& [name, stored] : *state->reservations) {
        taken_.add(name, fleet::decision_of(stored.record));
        taken_hosts_[name] = stored.record.host;
    }
    for (auto const& [name, host] : std::map(taken_hosts_))
        if (!state->reservations->contains(name) && !in_use_.contains(name)) {
            taken_.forget(name);
            taken_hosts_.erase(name);
        }
    return {};
}

// With the mutex held. What a host lists is in its summary; what is in no record was given up.
void Scheduler::forget_reported(InventoryView const& view, State const& state) {
    std::erase_if(taken_hosts_, [&](auto const& each) {
        auto const& [name, host] = each;
        bool const gone = !in_use_.contains(name) && !state.reservations->contains(name);
        if (!gone && !listed(view, host, name)) return false;
        taken_.forget(name);
        return true;
    });
}

void Scheduler::forget(std::string const& name) {
    std::lock_guard const lock(mutex_);
    taken_.forget(name);
    taken_hosts_.erase(name);
}

std::size_t Scheduler::unreported() const {
    std::lock_guard const lock(mutex_);
    return taken_.size();
}

// The hosts that suit, best first, then all others with their reasons.
Result<std::vector<Ranked>> Scheduler::decide(FleetReservationSpec const& spec,
                                              std::vector<Ranked> const& refused, bool takes) {
    auto const state = seams_.state();
    auto const view = seams_.inventory();
    std::lock_guard const lock(mutex_);
    forget_reported(*view, *state);
    auto hosts = summaries_.of(*view, *state);
    std::erase_if(hosts, [&](HostSummary const* host) {
        return std::ranges::find(refused, host->name, &Ranked::host) != refused.end();
    });
    PlacementRequest request{spec, {}};
    if (spec.same_rack) {
        request.group_rack = rack_of_group(*state, *spec.same_rack, spec.name);
        if (!request.group_rack) request.group_rack = taken_.rack_of_group(*spec.same_rack);
    }
    auto ranked = schedule(hosts, request, taken_);
    std::erase_if(ranked, [&](Ranked const& one) {
        return !one.fit && std::ranges::find(refused, one.host, &Ranked::host) != refused.end();
    });
    ranked.insert(ranked.end(), refused.begin(), refused.end());
    VFMGR_TRY(auto const first, chosen(ranked, spec));
    if (takes) {
        taken_.add(spec.name, fleet::decision_of(first, spec));
        taken_hosts_[spec.name] = first.host;
    }
    return ranked;
}

Result<void> Scheduler::write(Attempt& attempt, ReservationRecord const& record) {
    auto const written = seams_.writer.write_as_scheduler(
        attempt.fence,
        [&](State const& now) -> Result<std::optional<GuardedTransaction>> {
            VFMGR_TRY(auto guarded, hold(now, record, attempt.act));
            return std::optional(std::move(guarded));
        },
        seams_.timing.clock.steady_now() + write_patience);
    if (!written) return fail(written.error());
    attempt.act = record.act;
    return {};
}

Result<void> Scheduler::erase_record(Revision fence, std::string const& name,
                                     std::string const& act) {
    auto const written = seams_.writer.write_as_scheduler(
        fence, [&](State const& now) { return erase(now, name, act); },
        seams_.timing.clock.steady_now() + write_patience);
    if (!written) return fail(written.error());
    return {};
}

HostWord Scheduler::ask(std::string const& host, http::Request const& request) {
    auto const state = seams_.state();
    auto const* const record = find_record(state->hosts, host);
    if (!record) return HostRefusal{{Problem::not_found, "is no host of this fleet any more", {}}};
    return word_of(seams_.send(record->record, request, one_answer));
}

// Until the host has said what it did. The request is the same each time, and done once.
HostWord Scheduler::keep(Attempt const& attempt, ReservationRecord const& record,
                         std::vector<VfsOfPf> const& pfs) {
    auto const& timing = seams_.timing;
    auto const request = keep_request(record, pfs, attempt.who, attempt.fence);
    auto const deadline = timing.clock.steady_now() + host_patience;
    Backoff backoff(backoff_first, backoff_most);
    for (bool asked_before = false;; asked_before = true) {
        auto word = ask(record.host, request);
        auto const* const refusal = std::get_if<HostRefusal>(&word);
        if (!refusal && !std::holds_alternative<Unknown>(word)) return word;
        if (refusal && !asked_before) return word;
        // The request before may have been carried out. That the host can't be reached now says
        // nothing of that one; what it refuses now, it may still have from then.
        if (refusal && refusal->why.problem != Problem::unavailable &&
            !drop(record.host, drop_request(record.spec.name, attempt.who, attempt.fence)))
            return word;
        auto const again = timing.clock.steady_now() + backoff.next();
        if (again < deadline && timing.wait_until(again)) continue;
        return refusal ? HostWord(Unknown{refusal->why}) : word;
    }
}

std::optional<std::variant<HostRefusal, Outdated, Unknown>> Scheduler::drop(
    std::string const& host, http::Request const& request) {
    auto const& timing = seams_.timing;
    auto const deadline = timing.clock.steady_now() + host_patience;
    Backoff backoff(backoff_first, backoff_most);
    for (;;) {
        auto const state = seams_.state();
        auto const* const record = find_record(state->hosts, host);
        // Of a host that is off it is known: whatever it kept is over.
        if (!record || record->record.fenced) return std::nullopt;
        auto trouble = trouble_of(seams_.send(record->record, request, one_answer));
        if (!trouble || !std::holds_alternative<Unknown>(*trouble)) return trouble;
        auto const again = timing.clock.steady_now() + backoff.next();
        if (again >= deadline || !timing.wait_until(again)) return trouble;
    }
}

// One host after the other. The record is there before a host is asked, and names that host alone.
Result<FleetReservation> Scheduler::place(Attempt& attempt) {
    auto const& name = attempt.spec.name;
    for (int tries = 0;; ++tries) {
        auto const ranked = tries < hosts_tried_max
                                ? decide(attempt.spec, attempt.refused, true)
                                : chosen(attempt.refused, attempt.spec).map([](auto const& one) {
                                      return std::vector{one};
                                  });
        if (!ranked) {
            if (!attempt.act.empty())
                static_cast<void>(erase_record(attempt.fence, name, attempt.act).has_value());
            return fail(ranked.error());
        }
        auto const record = record_of(attempt.spec, ranked->front(), attempt.who,
                                      seams_.timing.clock.now(), new_act());
        if (auto const written = write(attempt, record); !written) {
            forget(name);
            return fail(written.error());
        }
        auto const word = keep(attempt, record, record.pfs);
        if (auto const* const kept = std::get_if<Reservation>(&word)) {
            auto view = held(view_of(record), *kept);
            set_candidates(view, *ranked);
            return view;
        }
        if (auto const* const unknown = std::get_if<Unknown>(&word))
            return fail(lost(name, record.host, unknown->why));
        forget(name);
        if (std::holds_alternative<Outdated>(word)) return fail(other_schedules());
        auto refused = ranked->front();
        refused.fit.reset();
        refused.reason = "refused: " + detail_with_causes(std::get<HostRefusal>(word).why);
        attempt.refused.push_back(std::move(refused));
    }
}

// What an attachment has taken of it stays there. A host that has never had it, since the scheduler
// that chose it died, gets it now; one that has no room left for it gives way to another.
Result<FleetReservation> Scheduler::renew(Attempt& attempt, ReservationRecord record) {
    auto const& name = attempt.spec.name;
    auto const word = ask(record.host, show_request(name, attempt.fence));
    if (auto const* const why = std::get_if<Unknown>(&word))
        return fail(lost(name, record.host, why->why));
    if (std::holds_alternative<Outdated>(word)) return fail(other_schedules());
    auto const* const kept = std::get_if<Reservation>(&word);
    auto const* const refusal = std::get_if<HostRefusal>(&word);
    if (refusal && refusal->why.problem != Problem::not_found) return fail(refusal->why);
    auto const now = seams_.timing.clock.now();
    record.spec.seconds = attempt.spec.seconds;
    record.expires_at = now + std::chrono::seconds(record.spec.seconds);
    record.act = new_act();
    VFMGR_CHECK(write(attempt, record));
    auto const again = keep(attempt, record, kept ? by_pf(kept->vfs) : record.pfs);
    if (auto const* const renewed = std::get_if<Reservation>(&again))
        return held(view_of(record), *renewed);
    if (auto const* const why = std::get_if<Unknown>(&again))
        return fail(lost(name, record.host, why->why));
    if (std::holds_alternative<Outdated>(again)) return fail(other_schedules());
    if (kept) return fail(std::get<HostRefusal>(again).why);
    forget(name);
    attempt.refused.push_back({record.host, record.rack,
                               "refused: " + detail_with_causes(std::get<HostRefusal>(again).why)});
    return place(attempt);
}

Result<FleetReservation> Scheduler::reserve(FleetReservationSpec spec, Principal const& who) {
    VFMGR_TRY(auto const fence, leading());
    if (spec.name.empty()) spec.name = "r-" + random_hex(chosen_name_bytes);
    NamesInUse::Use const use(in_use_, spec.name);
    VFMGR_CHECK(use.check());
    Attempt attempt{who, std::move(spec), fence};
    auto const state = seams_.state();
    auto const* const there = find_record(state->reservations, attempt.spec.name);
    if (!there) return place(attempt);
    VFMGR_CHECK(check_same(there->record, attempt.spec, who));
    attempt.act = there->record.act;
    return renew(attempt, there->record);
}

Result<FleetReservation> Scheduler::preview(FleetReservationSpec const& spec,
                                            Principal const& who) {
    VFMGR_CHECK(leading());
    VFMGR_TRY(auto const ranked, decide(spec, {}, false));
    auto view = view_of(record_of(spec, ranked.front(), who, seams_.timing.clock.now(), {}));
    view.state = HoldState::planned;
    set_candidates(view, ranked);
    return view;
}

Result<void> Scheduler::release(std::string const& name, Principal const& who) {
    VFMGR_TRY(auto const fence, leading());
    NamesInUse::Use const use(in_use_, name);
    VFMGR_CHECK(use.check());
    auto const state = seams_.state();
    auto const* const there = find_record(state->reservations, name);
    if (!there || !may_see(there->record, who)) return fail(no_fleet_reservation(name));
    auto const& record = there->record;
    auto const trouble = drop(record.host, drop_request(name, who, fence));
    if (trouble) {
        if (std::holds_alternative<Outdated>(*trouble)) return fail(other_schedules());
        if (auto const* const unknown = std::get_if<Unknown>(&*trouble))
            return fail(lost(name, record.host, unknown->why));
        return fail(std::get<HostRefusal>(*trouble).why);
    }
    VFMGR_CHECK(erase_record(fence, name, record.act));
    forget(name);
    return {};
}

}  // namespace vfmgr::fleet
