// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/hosts/host_calls.hpp"

#include <fmt/format.h>

#include "api/types/addresses.hpp"
#include "api/types/fleet.hpp"
#include "api/types/json.hpp"

namespace vfmgr::fleet {

Result<http::TlsTarget> target_of(HostRecord const& host) {
    constexpr std::uint16_t default_port = 8470;
    auto const place = parse_https_url(host.url, default_port);
    if (!place)
        return fail(Problem::internal, fmt::format("{} is not the address of a host", host.url));
    http::TlsTarget target;
    target.host = place->host;
    target.port = place->port;
    target.public_key = host.public_key;
    return target;
}

Result<http::Response> send_to(http::ClientPool& pool, HostRecord const& host,
                               http::Request const& request, std::chrono::milliseconds timeout) {
    VFMGR_TRY(auto const target, target_of(host));
    return pool.send(target, request, timeout);
}

void set_on_behalf(http::Request& request, Principal const& who) {
    OnBehalfOf on{who.name, who.role, {}};
    if (who.tenant) on.tenant = who.tenant->tenant.name;
    request.headers[on_behalf_of_header] = to_json_text(JsonWriter::encode(on));
}

}  // namespace vfmgr::fleet
