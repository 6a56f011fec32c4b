// SPDX-License-Identifier: Apache-2.0
// Refuses what a hostile web page makes a browser send. A browser shows its client certificate to
// this daemon whichever page asks, and a page can have a name of its own lead here. Programs other
// than browsers send neither Origin nor Sec-Fetch-Site. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/http/http.hpp"
#include "service/program.hpp"

namespace vfmgr {

// "vfmgr.example:8470", "192.0.2.1", "[2001:db8::1]:443": what a Host header is, and an Origin
// after its "https://".
struct Authority {
    std::string host;  // in lower case; an address as to_string() writes it
    std::uint16_t port = 443;
    bool operator==(Authority const&) const = default;
};
[[nodiscard]] std::optional<Authority> parse_authority(std::string_view text);

// Returns a host's name or address in the form of an Authority. A name may begin with "*.", as in
// certificates: it stands for one label. Absent: it is neither.
[[nodiscard]] std::optional<std::string> host_name(std::string_view text);

// Refuses a request over TCP that names another host than `hosts`, or the address that it came to;
// one that a page of another site sent, unless it is a link that somebody follows; and a change
// that may be a page's form. `hosts` are of host_name().
[[nodiscard]] Result<void> refuse_other_sites(http::Request const& request,
                                              std::set<std::string> const& hosts,
                                              Program const& program = {});

}  // namespace vfmgr
