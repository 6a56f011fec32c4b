// SPDX-License-Identifier: Apache-2.0
#include "api/types/fleet.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/addresses.hpp"
#include "api/types/json.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t fleet_name_max = 63;  // as a label of a host's name
constexpr std::size_t urls_max = 16;
constexpr std::size_t url_bytes_max = 300;
constexpr std::size_t ca_bytes_max = 16 * 1024;
constexpr std::size_t who_bytes_max = 200;
constexpr std::string_view uri_scheme = "vfmgr://";
constexpr std::string_view replica_part = "replica";
constexpr std::uint16_t fleet_port = 8480;

bool is_https(std::string_view url) {
    return url.size() <= url_bytes_max && parse_https_url(url, fleet_port);
}

// "token:ab12cd34": what it is, and its name. Such a name can be printed, and is not mistaken for
// a replica's, which has no ':'.
bool names_a_client(std::string_view who) {
    auto const colon = who.find(':');
    auto const visible = [](char one) { return one > ' ' && one < 0x7f; };
    return who.size() <= who_bytes_max && colon != who.npos && colon > 0 &&
           colon + 1 < who.size() && std::ranges::all_of(who, visible) &&
           who.substr(0, colon).find_first_not_of("abcdefghijklmnopqrstuvwxyz") == who.npos;
}

}  // namespace

template <class F, Of<FleetMembership> V>
void fields(F& f, V& membership) {
    f.value("fleet", membership.fleet);
    f.value("host", membership.host);
    f.value("urls", membership.urls);
    f.value("ca", membership.ca);
    f.defaulted("joined_at", membership.joined_at);
    f.maybe("contacted_at", membership.contacted_at);
    f.defaulted("fence", membership.fence);
}

void check(JsonReader& reader, FleetMembership const& membership) {
    if (reader.clean("fleet") && !is_uuid(membership.fleet))
        reader.complain("fleet", "must be the UUID of a fleet, in small letters");
    if (reader.clean("host") && !can_be_a_fleets(membership.host))
        reader.complain("host", "must be letters, digits, '.', '-' and '_', at most 63");
    auto const& urls = membership.urls;
    if (reader.clean("urls") && (urls.empty() || urls.size() > urls_max))
        reader.complain("urls", fmt::format("must be 1 to {}", urls_max));
    for (std::size_t i = 0; i < urls.size(); ++i)
        if (!is_https(urls[i]))
            reader.complain(reader.member_of("urls", i),
                            "must be a URL such as https://fleet1.example:8480");
    if (membership.ca.size() > ca_bytes_max)
        reader.complain("ca", fmt::format("must be at most {} bytes", ca_bytes_max));
}

template <class F, Of<FleetView> V>
void fields(F& f, V& view) {
    f.nullable("membership", view.membership);
    f.value("store", view.store);
    f.value("last_event", view.last_event);
    f.nullable("restored_at", view.restored_at);
    f.maybe("note", view.note);
    f.maybe("public_key", view.public_key);
}

template <class F, Of<OnBehalfOf> V>
void fields(F& f, V& caller) {
    f.value("who", caller.who);
    f.value("role", caller.role);
    f.maybe("tenant", caller.tenant);
}

void check(JsonReader& reader, OnBehalfOf const& caller) {
    if (reader.clean("who") && !names_a_client(caller.who))
        reader.complain("who", "must be a client's name, such as token:ab12cd34");
    if (caller.tenant && caller.role == Role::admin) reader.complain("tenant", "has no admins");
}

bool can_be_a_fleets(std::string_view name) {
    return is_plain_name(name, ".-_", fleet_name_max);
}

std::optional<ReplicaName> parse_replica_uri(std::string_view uri) {
    if (!uri.starts_with(uri_scheme)) return std::nullopt;
    uri.remove_prefix(uri_scheme.size());
    auto const fleet = take_until(uri, '/');
    auto const what = take_until(uri, '/');
    if (!fleet || !is_uuid(*fleet) || what != replica_part || !can_be_a_fleets(uri))
        return std::nullopt;
    return ReplicaName{std::string(*fleet), std::string(uri)};
}

std::string to_uri(ReplicaName const& name) {
    return fmt::format("{}{}/{}/{}", uri_scheme, name.fleet, replica_part, name.replica);
}

Result<OnBehalfOf> parse_on_behalf_of(std::string_view header) {
    if (header.size() > on_behalf_of_bytes_max)
        return fail(
            Problem::invalid_request,
            fmt::format("a Vfmgr-On-Behalf-Of header has at most {} bytes", on_behalf_of_bytes_max),
            "send a shorter name");
    return from_json_text<OnBehalfOf>(header);
}

template struct Json<FleetMembership>;
template struct Json<FleetView>;
template struct Json<OnBehalfOf>;

}  // namespace vfmgr
