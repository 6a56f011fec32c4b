// SPDX-License-Identifier: Apache-2.0
#include "service/cli/fleet_reservation.hpp"

#include <fmt/format.h>

#include "api/types/daemon.hpp"
#include "api/types/fleet_reservation.hpp"
#include "api/types/json.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

// Three hosts may be asked, each for its time.
constexpr std::chrono::seconds placing_time{150};

Table fleet_reservation_table(FleetReservation const& one) {
    return {
        {"NAME", "STATE", "HOST", "POOL", "NETWORK", "VFS", "REQUESTED-BY", "EXPIRES"},
        {{cell(one.name), cell(one.state), cell(one.host), cell(one.spec.pool),
          cell(one.spec.network), cell(one.vfs), cell(one.requested_by), cell(one.expires_at)}}};
}

Table considered_hosts(FleetReservation const& one) {
    Table table{{"HOST", "CHOSEN", "REASON"}, {}};
    for (auto const& host : one.candidates)
        table.rows.push_back({cell(host.host), cell(host.chosen), cell(host.reason)});
    return table;
}

std::string fleet_reservation_page(FleetReservation const& one, Options const& options) {
    auto const headers = options.no_headers ? Headers::hidden : Headers::shown;
    auto page = as_table(fleet_reservation_table(one), headers) +
                section("hosts that were considered", considered_hosts(one), options);
    if (one.more_candidates > 0) page += fmt::format("and {} hosts more\n", one.more_candidates);
    return page;
}

Result<FleetReservationSpec> fleet_spec(ReservationArguments const& arguments) {
    FleetReservationSpec spec;
    if (!arguments.pool.empty()) spec.pool = arguments.pool;
    if (!arguments.network.empty()) spec.network = arguments.network;
    spec.count = arguments.count;
    spec.one_per_rail = arguments.distinct_pfs;
    spec.seconds = arguments.seconds;
    spec.hosts = arguments.hosts;
    spec.racks = arguments.racks;
    if (!arguments.labels.empty()) {
        VFMGR_TRY(spec.labels, labels_of(arguments.labels));
    }
    if (!arguments.same_rack.empty()) spec.same_rack = arguments.same_rack;
    if (arguments.spread) spec.strategy = HostStrategy::spread;
    return spec;
}

}  // namespace

Result<bool> is_fleet(Connection const& connection) {
    VFMGR_TRY(auto const about, get<About>(connection, "/v1"));
    return about.name == "vfmgr-fleetd";
}

Result<void> refuse_places(ReservationArguments const& arguments) {
    bool const asks = !arguments.hosts.empty() || !arguments.racks.empty() ||
                      !arguments.labels.empty() || !arguments.same_rack.empty() || arguments.spread;
    if (!asks) return {};
    return fail(Problem::invalid_request,
                "a host answers, which can't choose one by host, rack or label",
                "leave those options out, or name a replica of the fleet with --host");
}

Result<void> reserve_in_fleet(Connection const& connection, Options const& options,
                              std::string const& name, ReservationArguments const& arguments) {
    VFMGR_TRY(auto const spec, fleet_spec(arguments));
    ApiRequest request{.method = "PUT",
                       .path = "/v1/reservations/" + name,
                       .body = to_json_text(JsonWriter::encode(spec)),
                       .timeout = placing_time};
    if (options.dry_run) request.query["dry_run"] = "true";
    VFMGR_TRY(auto const response, connection.send(request));
    return print_answer<FleetReservation>(response, options, fleet_reservation_table,
                                          fleet_reservation_page);
}

Result<void> show_in_fleet(Connection const& connection, Options const& options,
                           std::string const& name) {
    VFMGR_TRY(auto const response, connection.send({.path = "/v1/reservations/" + name}));
    return print_answer<FleetReservation>(response, options, fleet_reservation_table,
                                          fleet_reservation_page);
}

}  // namespace vfmgr
