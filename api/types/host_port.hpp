// SPDX-License-Identifier: Apache-2.0
// Where a server is: "10.0.0.1:8473", "host", "[::1]:8473". A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vfmgr {

struct HostPort {
    std::string host;  // without brackets
    std::uint16_t port = 0;
    bool operator==(HostPort const&) const = default;
};

[[nodiscard]] std::optional<HostPort> parse_host_port(std::string_view text,
                                                      std::uint16_t default_port);
// Accepts a name or an address. Refuses anything that would mean more in a URL or a Host header.
[[nodiscard]] bool valid_host(std::string_view host);
[[nodiscard]] std::string to_string(HostPort const& place);

}  // namespace vfmgr
