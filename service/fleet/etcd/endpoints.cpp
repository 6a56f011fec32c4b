// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/etcd/endpoints.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/text.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::string_view example = "write it as \"https://10.0.0.1:2379\" in [etcd] endpoints";

tl::unexpected<Error> refuse(std::string const& url, std::string_view why) {
    return fail(Problem::invalid_request, fmt::format("etcd's endpoint {} {}", quoted(url), why),
                std::string(example));
}

// A name, an IPv4 address, or an IPv6 address in brackets.
bool plausible_host(std::string_view host) {
    if (host.starts_with('[') && host.ends_with(']') && host.size() > 4) {
        host = host.substr(1, host.size() - 2);
        return std::ranges::all_of(host, [](char one) {
            return std::string_view("0123456789abcdefABCDEF:.").find(one) != std::string_view::npos;
        });
    }
    return is_plain_name(host, ".-", 253);
}

}  // namespace

Result<Endpoints> parse_endpoints(std::vector<std::string> const& urls) {
    if (urls.empty())
        return fail(Problem::invalid_request, "no member of etcd is named",
                    "set endpoints in [etcd]");
    Endpoints all;
    for (auto const& url : urls) {
        std::string_view rest = url;
        bool const encrypted = rest.starts_with("https://");
        if (!encrypted && !rest.starts_with("http://")) return refuse(url, "is no URL");
        rest.remove_prefix(encrypted ? 8 : 7);
        if (rest.ends_with('/')) rest.remove_suffix(1);
        auto const colon = rest.rfind(':');
        if (colon == rest.npos) return refuse(url, "has no port");
        auto const port = parse_digits(rest.substr(colon + 1), {.digits_max = 5, .max = 65'535});
        if (!port || *port == 0) return refuse(url, "has no port of 1 to 65535");
        if (!plausible_host(rest.substr(0, colon))) return refuse(url, "has no host");
        if (!all.hosts.empty() && encrypted != all.encrypted)
            return refuse(url, "differs from the others in its scheme");
        if (std::ranges::find(all.hosts, rest) != all.hosts.end())
            return refuse(url, "is there twice");
        all.encrypted = encrypted;
        all.hosts.emplace_back(rest);
    }
    return all;
}

}  // namespace vfmgr::fleet
