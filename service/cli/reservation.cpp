// SPDX-License-Identifier: Apache-2.0
#include "api/types/reservation.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/choice.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/fleet_reservation.hpp"
#include "service/cli/progress.hpp"
#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

constexpr auto reservations_path = "/v1/reservations";

std::string reservation_path(std::string const& name) {
    return fmt::format("{}/{}", reservations_path, name);
}

Table reservation_table(std::vector<Reservation> const& reservations) {
    Table table{{"NAME", "POOL", "NETWORK", "VFS", "REQUESTED-BY", "EXPIRES"}, {}};
    for (auto const& one : reservations)
        table.rows.push_back({cell(one.name), cell(one.spec.pool), cell(one.spec.network),
                              cell(one.vfs), cell(one.requested_by), cell(one.expires_at)});
    return table;
}

std::string reservation_page(Reservation const& one, Options const& options) {
    return as_table(reservation_table({one}),
                    options.no_headers ? Headers::hidden : Headers::shown);
}

Result<void> show_reservation(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(bool const fleet, is_fleet(connection));
    if (fleet) return show_in_fleet(connection, options, name);
    VFMGR_TRY(auto const response, connection.send({.path = reservation_path(name)}));
    return print_answer<Reservation>(
        response, options, [](Reservation const& one) { return reservation_table({one}); },
        reservation_page);
}

Result<void> make(Options const& options, std::string const& name,
                  ReservationArguments const& arguments) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    VFMGR_TRY(bool const fleet, is_fleet(connection));
    if (fleet) return reserve_in_fleet(connection, options, name, arguments);
    VFMGR_CHECK(refuse_places(arguments));
    ReservationSpec spec;
    if (!arguments.pool.empty()) spec.pool = arguments.pool;
    if (!arguments.network.empty()) spec.network = arguments.network;
    spec.count = arguments.count;
    spec.distinct_pfs = arguments.distinct_pfs;
    spec.seconds = arguments.seconds;
    VFMGR_TRY(auto const settled, change(connection, options,
                                         {.method = "PUT",
                                          .path = reservation_path(name),
                                          .body = nlohmann::json(spec).dump()},
                                         reservation_table({})));
    if (settled.shown) return {};
    return show_reservation(options, name);
}

Result<void> release(Options const& options, std::string const& name) {
    VFMGR_TRY(auto const connection, Connection::open(options));
    return change_and_report(connection, options,
                             {.method = "DELETE", .path = reservation_path(name)},
                             fmt::format("reservation {} is released", name));
}

}  // namespace

void add_reservation_commands(CLI::App& app, Session& session) {
    auto* const reservation = add_group(app, "reservation", "keep VFs for later, for a time");
    add_command(*reservation, session, "list", "list the reservations of the host or the fleet",
                [](Options const& options) {
                    return print_list<Reservation>(options, {.path = reservations_path},
                                                   reservation_table);
                });
    Named const by_name{"RESERVATION", "name of the reservation"};
    add_named(*reservation, session, "show", "show one reservation", by_name, show_reservation);
    auto const [command, name, arguments] =
        add_named(*reservation, session, "make", "keep VFs, or others for another time",
                  {"RESERVATION", "1 to 32 of a-z, 0-9 and '-'"}, make, ReservationArguments{});
    command->add_option("--pool", arguments.pool, "of this pool")->type_name("POOL");
    command->add_option("--network", arguments.network, "on PFs that carry this network")
        ->type_name("NETWORK");
    command->add_option("--count", arguments.count, "number of VFs, 1 to 128");
    command->add_flag("--distinct-pfs,--one-per-rail", arguments.distinct_pfs,
                      "each VF on a PF of its own; of a fleet, on a rail of its own");
    command->add_option("--seconds", arguments.seconds, "for this time, 10 to 604800");
    command->add_option("--on-host", arguments.hosts, "of a fleet: one of these; may be repeated")
        ->type_name("NAME");
    command->add_option("--on-rack", arguments.racks, "of a fleet: one of these; may be repeated")
        ->type_name("RACK");
    command->add_option("--on-label", arguments.labels, "KEY=VALUE of the host; may be repeated")
        ->type_name("LABEL");
    command
        ->add_option("--same-rack", arguments.same_rack,
                     "of a fleet: those that name the same group get one rack")
        ->type_name("GROUP");
    command->add_flag("--spread", arguments.spread, "of a fleet: the emptiest host that suits");
    add_named(*reservation, session, "release", "give up the VFs that it still keeps", by_name,
              release);
}

}  // namespace vfmgr
