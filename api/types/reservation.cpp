// SPDX-License-Identifier: Apache-2.0
#include "api/types/reservation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/json.hpp"
#include "api/types/network.hpp"

namespace vfmgr {
namespace {

constexpr std::uint16_t reserved_vfs_max = 128;
constexpr std::uint32_t reserved_seconds_min = 10;
constexpr std::uint32_t reserved_seconds_max = 7 * 24 * 3600;

}  // namespace

template <class F, Of<VfsOfPf> V>
void fields(F& f, V& part) {
    f.value("pf", part.pf);
    f.value("count", part.count);
}

template <class F, Of<ReservationSpec> V>
void fields(F& f, V& spec) {
    f.maybe("pool", spec.pool);
    f.maybe("network", spec.network);
    f.defaulted("count", spec.count);
    f.defaulted("distinct_pfs", spec.distinct_pfs);
    f.defaulted("seconds", spec.seconds);
    f.maybe("pfs", spec.pfs);
}

void check_pfs(JsonReader& reader, std::vector<VfsOfPf> const& pfs, std::uint16_t all) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < pfs.size(); ++i) {
        auto const& [pf, count] = pfs[i];
        sum += count;
        auto const place = reader.member_of("pfs", i);
        if (count < 1 || count > reserved_vfs_max)
            reader.complain(place + "/count", "must be from 1 to 128");
        if (std::ranges::count(pfs, pf, &VfsOfPf::pf) > 1)
            reader.complain(place + "/pf", "is listed twice");
    }
    if (sum != all) reader.complain("count", fmt::format("must be {}, as many as pfs has", sum));
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
    if (spec.pfs && reader.clean("count", "pfs")) check_pfs(reader, *spec.pfs, spec.count);
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

template struct Json<VfsOfPf>;
template struct Json<ReservationSpec>;
template struct Json<Reservation>;

}  // namespace vfmgr
