// SPDX-License-Identifier: Apache-2.0
#include "api/types/reservation.hpp"

#include "api/types/json.hpp"
#include "api/types/network.hpp"

namespace vfmgr {
namespace {

constexpr std::uint16_t reserved_vfs_max = 128;
constexpr std::uint32_t reserved_seconds_min = 10;
constexpr std::uint32_t reserved_seconds_max = 7 * 24 * 3600;

}  // namespace

template <class F, Of<ReservationSpec> V>
void fields(F& f, V& spec) {
    f.maybe("pool", spec.pool);
    f.maybe("network", spec.network);
    f.defaulted("count", spec.count);
    f.defaulted("distinct_pfs", spec.distinct_pfs);
    f.defaulted("seconds", spec.seconds);
}

void check(JsonReader& reader, ReservationSpec const& spec) {
    if (reader.clean("pool", "network") && !spec.pool && !spec.network)
        reader.complain("pool", "is required, or a network");
    for (auto const& [name, value] : {std::pair{"pool", &spec.pool}, {"network", &spec.network}})
        if (*value && !can_be_a_networks(**value)) reader.complain(name, rule_of_network_names);
    if (spec.count < 1 || spec.count > reserved_vfs_max)
        reader.complain("count", "must be from 1 to 128");
    if (spec.seconds < reserved_seconds_min || spec.seconds > reserved_seconds_max)
        reader.complain("seconds", "must be from 10 to 604800 (7 days)");
}

template <class F, Of<Reservation> V>
void fields(F& f, V& reservation) {
    f.value("name", reservation.name);
    f.value("spec", reservation.spec);
    f.value("vfs", reservation.vfs);
    f.value("requested_by", reservation.requested_by);
    f.value("created_at", reservation.created_at);
    f.value("expires_at", reservation.expires_at);
    f.nullable("tenant", reservation.tenant);
}

template struct Json<ReservationSpec>;
template struct Json<Reservation>;

}  // namespace vfmgr
