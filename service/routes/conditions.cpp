// SPDX-License-Identifier: Apache-2.0
#include "service/routes/conditions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "api/types/text.hpp"

namespace vfmgr {
namespace {

constexpr std::string_view blanks = " \t";

std::string_view trimmed(std::string_view text) {
    text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
    return text.substr(0, text.find_last_not_of(blanks) + 1);
}

bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

Error not_tags(std::string_view value) {
    return {Problem::invalid_request, fmt::format("{} is not a list of ETags", quoted(value)),
            "send the ETag that the GET returned, such as \"7\", or *"};
}

// Takes the first tag of a list, up to its comma, from `rest`.
std::optional<EntityTag> take_tag(std::string_view& rest) {
    EntityTag tag;
    tag.weak = rest.starts_with("W/");
    auto text = rest.substr(tag.weak ? 2 : 0);
    // A quoted tag may have commas in it, and no quotes.
    auto const quote = text.starts_with('"') ? text.find('"', 1) : 0;
    if (quote == text.npos) return std::nullopt;
    auto const comma = std::min(text.find(',', quote), text.size());
    auto const given = trimmed(text.substr(0, comma));
    rest = text.substr(comma);
    bool const whole = quote > 0 && given.size() == quote + 1;
    if (!whole && (tag.weak || !is_number(given))) return std::nullopt;
    tag.text = whole ? std::string(given) : fmt::format("\"{}\"", given);
    return tag;
}

std::optional<std::string> header_of(Call const& call, char const* name) {
    auto const found = call.request.headers.find(name);
    if (found == call.request.headers.end()) return std::nullopt;
    return found->second;
}

}  // namespace

Result<EntityTags> parse_entity_tags(std::string_view value) {
    if (trimmed(value) == "*") return EntityTags{};
    std::vector<EntityTag> tags;
    for (auto rest = trimmed(value); !rest.empty();) {
        // RFC 9110, 5.6.1: elements of a list may be empty.
        if (rest.front() != ',') {
            auto tag = take_tag(rest);
            if (!tag) return fail(not_tags(value));
            tags.push_back(std::move(*tag));
        }
        rest = trimmed(rest.substr(std::min<std::size_t>(1, rest.size())));
    }
    if (tags.empty()) return fail(not_tags(value));
    return tags;
}

Result<IfMatch> if_match(Call const& call) {
    auto const header = header_of(call, "if-match");
    if (!header) return IfMatch();
    VFMGR_TRY(auto const tags, parse_entity_tags(*header));
    if (!tags) return IfMatch();
    std::vector<std::uint64_t> revisions;
    for (auto const& tag : *tags) {
        auto const text = std::string_view(tag.text).substr(1, tag.text.size() - 2);
        auto const revision =
            parse_digits(text, {.max = std::numeric_limits<std::uint64_t>::max()});
        if (revision && !tag.weak) revisions.push_back(*revision);
    }
    return IfMatch(std::move(revisions));
}

Result<http::Response> unless_known(Call const& call, http::Response response) {
    auto const header = header_of(call, "if-none-match");
    auto const etag = response.headers.find("ETag");
    if (!header || response.status != 200 || etag == response.headers.end()) return response;
    VFMGR_TRY(auto const tags, parse_entity_tags(*header));
    auto const known =
        !tags || std::ranges::find(*tags, etag->second, &EntityTag::text) != tags->end();
    if (!known) return response;
    response.status = 304;
    response.body.clear();
    response.text.reset();
    return response;
}

Result<void> refuse_if_none_match(Call const& call) {
    if (call.request.method == "GET" || !call.request.headers.contains("if-none-match")) return {};
    return fail(Problem::invalid_request,
                fmt::format("{} takes no If-None-Match: only GET does", call.request.method),
                "send the ETag that the change is based on as If-Match, or leave it out");
}

}  // namespace vfmgr
