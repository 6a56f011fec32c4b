// SPDX-License-Identifier: Apache-2.0
#include "service/auth/fleet_call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/types/fleet.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

std::optional<std::string> header_of(std::map<std::string, std::string> const& headers,
                                     char const* name) {
    auto const found = headers.find(name);
    return found == headers.end() ? std::nullopt : std::optional(found->second);
}

Result<Principal> on_behalf(Principal const& replica, std::string const& header,
                            Tenants const& tenants) {
    VFMGR_TRY(auto const stated, parse_on_behalf_of(header));
    Principal who{"fleet:" + stated.who, std::min(replica.role, stated.role)};
    who.fleet_replica = replica.fleet_replica;
    return of_tenant(std::move(who), stated.tenant, tenants);
}

bool is_at(std::string_view path, std::string_view noun) {
    return path == noun || (path.starts_with(noun) && path[noun.size()] == '/');
}

}  // namespace

Result<FleetCall> fleet_call(Principal sent_by, std::map<std::string, std::string> const& headers,
                             Tenants const& tenants) {
    auto const caller = header_of(headers, on_behalf_of_header);
    auto const fence = header_of(headers, fence_header);
    FleetCall call{std::move(sent_by), {}};
    if (!caller && !fence) return call;
    if (!call.who.fleet_replica)
        return fail(Problem::invalid_request,
                    fmt::format("{} is no replica of this host's fleet, whose header {} is",
                                call.who.name, caller ? "Vfmgr-On-Behalf-Of" : "Vfmgr-Fence"),
                    "leave the header out");
    if (fence) {
        call.fence = parse_digits(*fence, {});
        if (!call.fence)
            return fail(Problem::invalid_request,
                        fmt::format("Vfmgr-Fence must be a whole number, not {}", quoted(*fence)),
                        "send the election's create_revision");
    }
    if (caller) {
        VFMGR_TRY(call.who, on_behalf(call.who, *caller, tenants));
    }
    return call;
}

bool is_replica_itself(Principal const& who) {
    return who.fleet_replica && who.name == "fleet:" + *who.fleet_replica;
}

Result<void> open_to_fleet(Principal const& who, std::string_view method, std::string_view path) {
    if (!who.fleet_replica) return {};
    constexpr std::array nouns{"/v1/tokens", "/v1/sessions", "/v1/audit"};
    bool const closed =
        std::ranges::any_of(nouns, [&](char const* noun) { return is_at(path, noun); }) ||
        (path == "/v1/fleet" && method != "GET") || path.ends_with("/firmware");
    if (!closed) return {};
    return fail(Problem::forbidden,
                fmt::format("{} comes by this host's fleet, for which {} {} is closed", who.name,
                            method, path),
                "have an admin of this host do it there");
}

}  // namespace vfmgr
