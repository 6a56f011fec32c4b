// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/placement/holding.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vfmgr::fleet {
namespace {

std::string holder_of(ReservationRecord const& record) {
    return record.tenant ? "tenant " + *record.tenant : record.requested_by;
}

bool same_holder(ReservationRecord const& record, ReservationRecord const& other) {
    return record.tenant ? record.tenant == other.tenant
                         : !other.tenant && record.requested_by == other.requested_by;
}

Result<void> check_limits(State const& state, ReservationRecord const& record) {
    auto const& all = *state.reservations;
    if (all.size() >= fleet_reservations_max)
        return fail(Problem::limit_exceeded,
                    fmt::format("the fleet has {} reservations already", all.size()),
                    "wait until some expire: vfctl reservation list");
    auto const own = std::ranges::count_if(
        all, [&](auto const& each) { return same_holder(each.second.record, record); });
    if (static_cast<std::size_t>(own) < fleet_reservations_each_max) return {};
    return fail(discreetly({Problem::limit_exceeded,
                            fmt::format("{} has {} reservations already", holder_of(record), own),
                            "release some, or wait until they expire"}));
}

Error name_is_taken(ReservationRecord const& record) {
    return {Problem::conflict,
            fmt::format("reservation {} is {}'s", record.spec.name, holder_of(record)),
            "choose another name"};
}

}  // namespace

ReservationRecord record_of(FleetReservationSpec const& spec, Ranked const& chosen,
                            Principal const& who, Time now, std::string act) {
    ReservationRecord record;
    record.spec = spec;
    record.host = chosen.host;
    record.rack = chosen.rack;
    record.reason = chosen.reason;
    if (chosen.fit) {
        for (auto const& [pf, vfs] : chosen.fit->vfs) record.pfs.push_back({pf, vfs});
        record.gpus = chosen.fit->held;
    }
    record.requested_by = who.name;
    if (who.tenant) record.tenant = who.tenant->tenant.name;
    record.created_at = now;
    record.expires_at = now + std::chrono::seconds(spec.seconds);
    record.act = std::move(act);
    return record;
}

Result<GuardedTransaction> hold(State const& state, ReservationRecord const& record,
                                std::string const& instead_of) {
    auto const& name = record.spec.name;
    auto const* const there = find_record(state.reservations, name);
    if (there && there->record.act != instead_of) return fail(name_is_taken(there->record));
    if (!there) VFMGR_CHECK(check_limits(state, record));
    auto const key = keys::of(keys::reservations, name);
    return GuardedTransaction{
        {{there ? unchanged(key, there->mod_revision) : absent(key)},
         {Put{key, there ? rewritten(there->text, record) : record_text(record)}},
         {key}},
        key,
        record.act};
}

// Without an act: see Writer.
std::optional<GuardedTransaction> erase(State const& state, std::string const& name,
                                        std::string const& act) {
    auto const* const there = find_record(state.reservations, name);
    if (!there || there->record.act != act) return std::nullopt;
    auto const key = keys::of(keys::reservations, name);
    return GuardedTransaction{
        {{unchanged(key, there->mod_revision)}, {Erase{key}}, {key}}, key, {}};
}

bool may_see(ReservationRecord const& record, Principal const& who) {
    return !who.tenant || record.tenant == who.tenant->tenant.name;
}

Result<void> check_same(ReservationRecord const& record, FleetReservationSpec const& spec,
                        Principal const& who) {
    auto const own = record.tenant ? who.tenant && record.tenant == who.tenant->tenant.name
                                   : !who.tenant && record.requested_by == who.name;
    if (!own) return fail(name_is_taken(record));
    auto renewed = record.spec;
    renewed.seconds = spec.seconds;
    if (renewed == spec) return {};
    return fail(
        discreetly({Problem::conflict,
                    fmt::format("reservation {} is there already, for another request", spec.name),
                    "release it first, or choose another name; the same request again renews it"}));
}

Decision decision_of(ReservationRecord const& record) {
    Decision decision{record.host,
                      record.rack,
                      record.spec.network.value_or(""),
                      record.spec.same_rack.value_or(""),
                      {},
                      record.gpus};
    for (auto const& [pf, count] : record.pfs) decision.vfs.push_back({pf, count});
    return decision;
}

std::optional<std::string> rack_of_group(State const& state, std::string_view group,
                                         std::string_view name) {
    for (auto const& [other, stored] : *state.reservations)
        if (other != name && stored.record.spec.same_rack == group) return stored.record.rack;
    return std::nullopt;
}

Item<ReservationFacts> const* listed(InventoryView const& view, std::string_view host,
                                     std::string const& name) {
    auto const* const part = view.find(host);
    return part ? part->documents.reservations->find(name) : nullptr;
}

FleetReservation view_of(ReservationRecord const& record) {
    FleetReservation view;
    view.name = record.spec.name;
    view.spec = record.spec;
    view.host = record.host;
    view.pfs = record.pfs;
    view.gpus = record.gpus;
    view.candidates = {{record.host, true, record.reason}};
    view.requested_by = record.requested_by;
    view.tenant = record.tenant;
    view.created_at = record.created_at;
    view.expires_at = record.expires_at;
    return view;
}

FleetReservation held(FleetReservation view, Reservation const& kept) {
    view.state = HoldState::held;
    view.vfs = kept.vfs;
    view.expires_at = kept.expires_at;
    return view;
}

void set_candidates(FleetReservation& view, std::vector<Ranked> const& ranked) {
    auto const suit = static_cast<std::size_t>(
        std::ranges::count_if(ranked, [](auto const& one) { return one.fit.has_value(); }));
    auto const unfit = ranked.size() - suit;
    constexpr auto half = fleet_candidates_max / 2;
    auto const unfit_shown = std::min(
        unfit, std::max(half, fleet_candidates_max - std::min(suit, fleet_candidates_max)));
    auto const suit_shown = std::min(suit, fleet_candidates_max - unfit_shown);
    view.candidates.clear();
    for (std::size_t at = 0; at < ranked.size(); ++at) {
        bool const shown = at < suit ? at < suit_shown : at - suit < unfit_shown;
        if (!shown) continue;
        auto const& one = ranked[at];
        view.candidates.push_back({one.host, at == 0 && one.fit, one.reason});
    }
    view.more_candidates = static_cast<std::uint32_t>(ranked.size() - view.candidates.size());
}

Error no_fleet_reservation(std::string const& name) {
    return discreetly({Problem::not_found, fmt::format("the fleet has no reservation {}", name),
                       "GET /v1/reservations lists those of all hosts"});
}

}  // namespace vfmgr::fleet
