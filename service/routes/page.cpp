// SPDX-License-Identifier: Apache-2.0
#include "service/routes/page.hpp"

#include <fmt/format.h>

#include "api/http/uri.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

constexpr std::uint32_t items_max = 500;

}  // namespace

std::vector<std::string> list_parameters(std::vector<std::string> filters) {
    filters.insert(filters.end(), {"limit", "cursor"});
    return filters;
}

std::string list_of(Call const& call) {
    auto filters = call.request.query;
    filters.erase("limit");
    filters.erase("cursor");
    return http::format_target({call.request.path, std::move(filters)});
}

Result<Page<std::string>> page_of(Call const& call) {
    VFMGR_TRY(auto const limit, whole_number(call, "limit", {1, items_max, items_max}));
    auto const cursor = call.request.query.find("cursor");
    if (cursor == call.request.query.end()) return Page<std::string>{limit, {}};
    VFMGR_TRY(auto key, key_in(cursor->second, list_of(call)));
    return Page<std::string>{limit, std::move(key)};
}

Result<RowRange> range_of(Call const& call) {
    VFMGR_TRY(auto const page, page_by<RowPlace>(call));
    return RowRange{page.limit, page.after};
}

Result<std::string> text_filter(Call const& call, std::string const& name) {
    auto const given = call.request.query.find(name);
    if (given == call.request.query.end()) return std::string();
    if (!given->second.empty()) return given->second;
    return fail(Problem::invalid_request, fmt::format("{} has no value", name),
                "give the value that it has to be, or leave it out");
}

Result<std::optional<PciAddress>> pf_filter(Call const& call) {
    auto const given = call.request.query.find("pf");
    if (given == call.request.query.end()) return std::nullopt;
    VFMGR_TRY(auto const pf, PciAddress::parse(given->second));
    return pf;
}

Error not_a_choice(std::string const& name, std::string_view given, std::string const& choices) {
    return {Problem::invalid_request, fmt::format("{} has no value {}", name, quoted(given)),
            fmt::format("use one of: {}", choices)};
}

}  // namespace vfmgr
