// SPDX-License-Identifier: Apache-2.0
// Reservations of the fleet: VFs of whichever host suits, kept for a time.
#include <fmt/format.h>

#include "api/types/json.hpp"
#include "api/types/network.hpp"
#include "service/fleet/hosts/host_calls.hpp"
#include "service/fleet/routes/routes.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::chrono::milliseconds host_answers{5'000};

std::string path_of(std::string const& name) {
    return "/v1/reservations/" + name;
}

Result<http::Response> answer_reserved(Parts const& parts, Call const& call,
                                       FleetReservationSpec spec) {
    VFMGR_TRY(bool const dry_run, is_true(call, "dry_run"));
    if (dry_run) {
        VFMGR_TRY(auto const planned, parts.scheduler.preview(spec, call.who));
        return json_response(200, planned);
    }
    VFMGR_TRY(auto const made, parts.scheduler.reserve(std::move(spec), call.who));
    auto response = json_response(201, made);
    response.headers["Location"] = path_of(made.name);
    return response;
}

Result<http::Response> make(Parts const& parts, Call const& call) {
    VFMGR_TRY(auto spec, body_of<FleetReservationSpec>(call));
    return answer_reserved(parts, call, std::move(spec));
}

Result<http::Response> put(Parts const& parts, Call const& call) {
    VFMGR_TRY(auto spec, body_of<FleetReservationSpec>(call));
    auto const& name = call.ids.at("name");
    if (!can_be_a_networks(name))
        return fail(Problem::invalid_request,
                    fmt::format("{} can't be the name of a reservation: it {}", name,
                                rule_of_network_names),
                    "choose another name");
    if (!spec.name.empty() && spec.name != name)
        return fail(Problem::invalid_request,
                    fmt::format("the path names reservation {}, but the body {}", name, spec.name),
                    "leave the name out of the body");
    spec.name = name;
    return answer_reserved(parts, call, std::move(spec));
}

// Any replica answers: what the host keeps now is the host's to say, and if it does not answer,
// what it said last.
Result<http::Response> show(Parts const& parts, Call const& call) {
    auto const& name = call.ids.at("name");
    auto const state = parts.registry.state();
    auto const* const there = find_record(state->reservations, name);
    if (!there || !may_see(there->record, call.who)) return fail(no_fleet_reservation(name));
    auto view = view_of(there->record);
    auto const* const host = find_record(state->hosts, view.host);
    if (!host) return json_response(200, view);
    auto const word = word_of(
        send_to(parts.pool, host->record, http::make_request("GET", path_of(name)), host_answers));
    if (auto const* const kept = std::get_if<Reservation>(&word))
        return json_response(200, held(std::move(view), *kept));
    auto const snapshot = parts.inventory.snapshot();
    auto const* const known = listed(*snapshot, view.host, name);
    if (!known || std::holds_alternative<HostRefusal>(word)) return json_response(200, view);
    view.state = HoldState::held;
    view.vfs = known->facts.vfs;
    if (known->facts.expires_at) view.expires_at = *known->facts.expires_at;
    return json_response(200, view);
}

Result<http::Response> release(Parts const& parts, Call const& call) {
    VFMGR_CHECK(parts.scheduler.release(call.ids.at("name"), call.who));
    return no_content();
}

}  // namespace

std::vector<FleetRoute> reservation_routes(Parts const& parts, Workers& workers) {
    auto const* const all = "/v1/reservations";
    auto const* const one = "/v1/reservations/{name}";
    auto const scheduled = [&](Answer answer) { return at_leader(parts, workers, answer); };
    return {
        {{"POST", all, Role::operator_, {"dry_run"}, for_tenants_too}, scheduled(make)},
        {{"GET", one, Role::viewer, {}, for_tenants_too}, work(parts, workers, show)},
        {{"PUT", one, Role::operator_, {"dry_run"}, for_tenants_too}, scheduled(put)},
        {{"DELETE", one, Role::operator_, {}, for_tenants_too}, scheduled(release)},
    };
}

}  // namespace vfmgr::fleet
