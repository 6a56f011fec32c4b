// SPDX-License-Identifier: Apache-2.0
#include "service/auth/origin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/http/uri.hpp"
#include "api/types/addresses.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t name_bytes_max = 253;
constexpr std::string_view any_label = "*.";
constexpr std::string_view https = "https://";

std::string_view header_of(http::Request const& request, char const* name) {
    auto const found = request.headers.find(name);
    return found == request.headers.end() ? std::string_view() : std::string_view(found->second);
}

bool is_known(std::string const& host, std::set<std::string> const& hosts) {
    if (hosts.contains(host)) return true;
    auto const dot = host.find('.');
    return dot != std::string::npos && hosts.contains("*" + host.substr(dot));
}

// HTTP/1.0 needs no Host, and no browser leaves it out.
Result<void> check_host(http::Request const& request, std::string const& reached_at,
                        std::set<std::string> const& hosts, Program const& program) {
    auto const header = header_of(request, "host");
    if (header.empty()) return {};
    auto const named = parse_authority(header);
    if (named && (named->host == reached_at || is_known(named->host, hosts))) return {};
    return fail(Problem::forbidden,
                fmt::format("the request is for host {}, which is no name of this daemon's",
                            quoted(std::string(header))),
                fmt::format("use a name of this host or of its certificate; or add it to "
                            "host_names in [listen.tls] of {}, then: {}",
                            program.settings, reload_command(program)));
}

tl::unexpected<Error> of_another_site(std::string const& what) {
    return fail(Problem::forbidden,
                fmt::format("a page of another site sent this request: {}", what),
                "open this daemon's own console; a program leaves the header out");
}

bool is_own(std::string_view origin, std::string_view host) {
    if (!origin.starts_with(https)) return false;
    auto const from = parse_authority(origin.substr(https.size()));
    return from && from == parse_authority(host);
}

// same-site is another host of the same domain, and no less foreign.
Result<void> check_sender(http::Request const& request) {
    auto const origin = header_of(request, "origin");
    if (!origin.empty() && !is_own(origin, header_of(request, "host")))
        return of_another_site("Origin is " + quoted(std::string(origin)));
    auto const site = header_of(request, "sec-fetch-site");
    bool const link = request.method == "GET" && header_of(request, "sec-fetch-mode") == "navigate";
    if (site.empty() || site == "same-origin" || site == "none" || link) return {};
    return of_another_site("Sec-Fetch-Site is " + quoted(std::string(site)));
}

// Browsers send these types for any page without asking first. A body of one is refused as no JSON;
// without a body, too, it may be a form's.
Result<void> refuse_form(http::Request const& request) {
    constexpr std::array<std::string_view, 3> of_forms{"application/x-www-form-urlencoded",
                                                       "multipart/form-data", "text/plain"};
    if (request.method == "GET" || !request.body.empty()) return {};
    auto const type = http::lower_case(std::string(header_of(request, "content-type")));
    auto const is_of = [&](std::string_view form) { return type.starts_with(form); };
    if (std::ranges::none_of(of_forms, is_of)) return {};
    return fail(Problem::forbidden,
                fmt::format("any page's form can send a request of type {}", quoted(type)),
                "send JSON with Content-Type: application/json, or no Content-Type without a body");
}

}  // namespace

std::optional<std::string> host_name(std::string_view text) {
    if (auto const address = IpAddress::parse(text)) return to_string(*address);
    auto name = http::lower_case(std::string(text));
    auto const begin = name.starts_with(any_label) ? any_label.size() : 0;
    if (name.ends_with('.')) name.pop_back();
    bool const good = begin < name.size() && !name.ends_with('.') &&
                      is_plain_name(std::string_view(name).substr(begin), "-._", name_bytes_max);
    return good ? std::optional(std::move(name)) : std::nullopt;
}

std::optional<Authority> parse_authority(std::string_view text) {
    bool const bracketed = text.starts_with('[');
    auto const end = bracketed ? text.find(']') : std::min(text.find(':'), text.size());
    if (end == text.npos) return std::nullopt;
    auto const host = text.substr(bracketed ? 1 : 0, end - (bracketed ? 1 : 0));
    auto const rest = text.substr(end + (bracketed ? 1 : 0));
    bool const is_v6 = host.find(':') != host.npos;
    auto name = bracketed == is_v6 ? host_name(host) : std::nullopt;
    if (!name || name->starts_with(any_label)) return std::nullopt;
    Authority authority{std::move(*name)};
    if (rest.empty()) return authority;
    auto const port = parse_digits(rest.substr(1), {.digits_max = 5, .max = UINT16_MAX});
    if (!rest.starts_with(':') || !port) return std::nullopt;
    authority.port = static_cast<std::uint16_t>(*port);
    return authority;
}

Result<void> refuse_other_sites(http::Request const& request, std::set<std::string> const& hosts,
                                Program const& program) {
    auto const* const remote = std::get_if<http::TcpPeer>(&request.peer);
    if (!remote) return {};
    VFMGR_CHECK(check_host(request, remote->reached_at, hosts, program));
    VFMGR_CHECK(check_sender(request));
    return refuse_form(request);
}

}  // namespace vfmgr
