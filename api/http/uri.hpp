// SPDX-License-Identifier: Apache-2.0
// Request targets (RFC 9112, 3.2) and their percent-encoding (RFC 3986). Pure functions, any
// thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"

namespace vfmgr::http {

struct RequestTarget {
    std::string path;  // decoded
    std::map<std::string, std::string> query;
    bool operator==(RequestTarget const&) const = default;
};

// Parses "/v1/pfs?dry_run=true", or the absolute form "http://host/v1/pfs". Refuses what two
// parsers could read differently: an encoded '/', a repeated parameter, control characters, text
// that is not UTF-8.
[[nodiscard]] Result<RequestTarget> parse_target(std::string_view text);

// The inverse of parse_target(), for the client.
[[nodiscard]] std::string format_target(RequestTarget const& target);

// A header's value must hold no control characters: they would start another header.
[[nodiscard]] bool valid_header_value(std::string_view value);
[[nodiscard]] std::string lower_case(std::string text);  // ASCII only
[[nodiscard]] bool valid_header_name(std::string_view name);

}  // namespace vfmgr::http
