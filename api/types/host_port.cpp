// SPDX-License-Identifier: Apache-2.0
#include "api/types/host_port.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/text.hpp"

namespace vfmgr {
namespace {

constexpr std::size_t host_bytes_max = 253;  // RFC 1035, 2.3.4

}  // namespace

bool valid_host(std::string_view host) {
    auto const fits = [](char ch) {
        return ch > ' ' && ch <= '~' &&
               std::string_view("/?#@[]").find(ch) == std::string_view::npos;
    };
    return !host.empty() && host.size() <= host_bytes_max && std::ranges::all_of(host, fits);
}

std::optional<HostPort> parse_host_port(std::string_view text, std::uint16_t default_port) {
    HostPort out{{}, default_port};
    bool const bracketed = text.starts_with('[');
    auto const end = bracketed ? text.find(']') : std::min(text.find(':'), text.size());
    if (end == std::string_view::npos) return std::nullopt;
    out.host = text.substr(bracketed ? 1 : 0, bracketed ? end - 1 : end);
    auto const rest = text.substr(bracketed ? end + 1 : end);
    if (!valid_host(out.host)) return std::nullopt;
    if (rest.empty()) return out;
    auto const port = parse_digits(rest.substr(1), {.digits_max = 5, .max = 65535});
    if (rest.front() != ':' || port.value_or(0) == 0) return std::nullopt;
    out.port = static_cast<std::uint16_t>(*port);
    return out;
}

std::string to_string(HostPort const& place) {
    bool const v6 = place.host.find(':') != std::string::npos;
    return v6 ? fmt::format("[{}]:{}", place.host, place.port)
              : fmt::format("{}:{}", place.host, place.port);
}

}  // namespace vfmgr
