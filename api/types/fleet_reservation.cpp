// SPDX-License-Identifier: Apache-2.0
#include "api/types/fleet_reservation.hpp"

#include <algorithm>

#include "api/types/json.hpp"
#include "api/types/network.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

constexpr std::uint16_t fleet_vfs_max = 128;
constexpr std::uint32_t fleet_seconds_min = 10;
constexpr std::uint32_t fleet_seconds_max = 7 * 24 * 3600;
constexpr std::size_t fleet_hosts_max = 1024;
constexpr std::size_t fleet_labels_max = 64;
constexpr std::size_t fleet_reservation_name_max = 63;  // as of a label in DNS
constexpr char const* fleet_name_rule =
    "must have 1 to 63 characters: letters, digits, '-', '_' and '.', with a letter or digit first";

bool is_fleet_name(std::string_view name) {
    return is_plain_name(name, "-_.", fleet_reservation_name_max);
}

void check_names(JsonReader& reader, std::string const& key,
                 std::vector<std::string> const& names) {
    if (names.size() > fleet_hosts_max)
        return reader.complain(key, fmt::format("must be at most {}", fleet_hosts_max));
    std::set<std::string_view> read;
    for (std::size_t i = 0; i < names.size(); ++i)
        if (!is_fleet_name(names[i]))
            reader.complain(reader.member_of(key, i), fleet_name_rule);
        else if (!read.insert(names[i]).second)
            reader.complain(reader.member_of(key, i), "is listed twice");
}

void check_near(JsonReader& reader, FleetReservationSpec const& spec) {
    if (!reader.clean("near", "gpus", "within")) return;
    if (!spec.near) {
        if (spec.gpus) reader.complain("gpus", "needs near");
        if (spec.within) reader.complain("within", "needs near");
        return;
    }
    if (spec.gpus && (*spec.gpus < 1 || *spec.gpus > spec.count))
        reader.complain("gpus", "must be from 1 to count: each GPU gets a VF of its own");
    if (spec.within == PciDistance::unknown)
        reader.complain("within", "must be one of SYS, NODE, PHB, PXB, PIX");
}

void check_places(JsonReader& reader, FleetReservationSpec const& spec) {
    check_names(reader, "hosts", spec.hosts);
    check_names(reader, "racks", spec.racks);
    if (spec.labels.size() > fleet_labels_max)
        reader.complain("labels", fmt::format("must be at most {}", fleet_labels_max));
    for (auto const& [key, value] : spec.labels)
        if (!is_fleet_name(key) || !is_fleet_name(value))
            reader.complain("labels/" + pointer_token(key), fleet_name_rule);
    for (auto const& [name, value] :
         {std::pair{"same_rack", &spec.same_rack}, {"partition", &spec.partition}})
        if (*value && !is_fleet_name(**value)) reader.complain(name, fleet_name_rule);
}

}  // namespace

template <class F, Of<FleetReservationSpec> V>
void fields(F& f, V& spec) {
    f.own_name(spec.name);
    f.maybe("pool", spec.pool);
    f.maybe("network", spec.network);
    f.defaulted("count", spec.count);
    f.defaulted("one_per_rail", spec.one_per_rail);
    f.maybe("near", spec.near);
    f.maybe("gpus", spec.gpus);
    f.maybe("within", spec.within);
    f.defaulted("hosts", spec.hosts);
    f.defaulted("labels", spec.labels);
    f.defaulted("racks", spec.racks);
    f.defaulted("strategy", spec.strategy);
    f.maybe("same_rack", spec.same_rack);
    f.maybe("partition", spec.partition);
    f.defaulted("seconds", spec.seconds);
}

void check(JsonReader& reader, FleetReservationSpec const& spec) {
    if (!spec.name.empty() && !can_be_a_networks(spec.name))
        reader.complain("name", rule_of_network_names);
    if (reader.clean("pool", "network") && !spec.pool && !spec.network)
        reader.complain("pool", "is required, or a network");
    for (auto const& [name, value] : {std::pair{"pool", &spec.pool}, {"network", &spec.network}})
        if (*value && !can_be_a_networks(**value)) reader.complain(name, rule_of_network_names);
    if (spec.count < 1 || spec.count > fleet_vfs_max)
        reader.complain("count", "must be from 1 to 128");
    if (spec.seconds < fleet_seconds_min || spec.seconds > fleet_seconds_max)
        reader.complain("seconds", "must be from 10 to 604800 (7 days)");
    check_near(reader, spec);
    check_places(reader, spec);
}

template <class F, Of<HostCandidate> V>
void fields(F& f, V& candidate) {
    f.value("host", candidate.host);
    f.value("chosen", candidate.chosen);
    f.value("reason", candidate.reason);
}

template <class F, Of<FleetReservation> V>
void fields(F& f, V& reservation) {
    f.value("name", reservation.name);
    f.value("spec", reservation.spec);
    f.value("state", reservation.state);
    f.value("host", reservation.host);
    f.value("pfs", reservation.pfs);
    f.value("vfs", reservation.vfs);
    f.value("gpus", reservation.gpus);
    f.value("candidates", reservation.candidates);
    f.value("more_candidates", reservation.more_candidates);
    f.value("requested_by", reservation.requested_by);
    f.value("created_at", reservation.created_at);
    f.value("expires_at", reservation.expires_at);
    f.nullable("tenant", reservation.tenant);
}

template struct Json<FleetReservationSpec>;
template struct Json<HostCandidate>;
template struct Json<FleetReservation>;

}  // namespace vfmgr
