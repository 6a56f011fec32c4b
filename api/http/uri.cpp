// SPDX-License-Identifier: Apache-2.0
#include "api/http/uri.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/types/text.hpp"

namespace vfmgr::http {
namespace {

constexpr std::string_view digits = "0123456789ABCDEF";

std::optional<unsigned> hex_digit(char c) {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
    if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
    return std::nullopt;
}

bool unreserved(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

bool control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

tl::unexpected<Error> refuse(std::string detail) {
    return fail(Problem::invalid_request, std::move(detail),
                "send a path as in api/openapi.yaml, with other characters percent-encoded");
}

// In a path '+' stays; in a query it is a space, as HTML forms and curl --data-urlencode encode it.
enum class Part { path, query };

Result<std::string> decode(std::string_view text, Part part) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (c == '%') {
            auto const high = i + 1 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
            auto const low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
            if (!high || !low)
                return refuse("the request target has a '%' without two hexadecimal digits");
            c = static_cast<char>(*high * 16 + *low);
            if (part == Part::path && c == '/')
                return refuse("the request target has an encoded '/' in its path");
            i += 2;
        } else if (c == '+' && part == Part::query) {
            c = ' ';
        }
        if (control(c)) return refuse("the request target has a control character");
        out += c;
    }
    if (!valid_utf8(out)) return refuse("the request target is not UTF-8");
    if (escaped(out, Shown::word) != out)
        return refuse("the request target has a control or bidirectional character");
    return out;
}

Result<std::map<std::string, std::string>> parse_query(std::string_view text) {
    std::map<std::string, std::string> query;
    while (!text.empty()) {
        auto const end = std::min(text.find('&'), text.size());
        auto const pair = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (pair.empty()) continue;
        auto const equals = std::min(pair.find('='), pair.size());
        VFMGR_TRY(std::string name, decode(pair.substr(0, equals), Part::query));
        VFMGR_TRY(std::string value,
                  decode(pair.substr(std::min(equals + 1, pair.size())), Part::query));
        if (name.empty()) return refuse("the request target has a parameter without a name");
        if (query.contains(name))
            return refuse(fmt::format("the parameter '{}' is given twice", name));
        query.emplace(std::move(name), std::move(value));
    }
    return query;
}

void encode(std::string& out, std::string_view text, std::string_view also_allowed) {
    for (char c : text) {
        if (unreserved(c) || also_allowed.find(c) != std::string_view::npos) {
            out += c;
            continue;
        }
        auto const octet = static_cast<unsigned char>(c);
        out += '%';
        out += digits[octet >> 4];
        out += digits[octet & 15];
    }
}

}  // namespace

bool valid_header_value(std::string_view value) {
    return std::none_of(value.begin(), value.end(), [](char c) { return control(c) && c != '\t'; });
}

std::string lower_case(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
}

bool valid_header_name(std::string_view name) {
    constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
    return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
        return unreserved(c) || marks.find(c) != std::string_view::npos;
    });
}

Result<RequestTarget> parse_target(std::string_view text) {
    for (std::string_view scheme : {"http://", "https://"}) {
        if (!text.starts_with(scheme)) continue;
        text.remove_prefix(scheme.size());
        auto const end = std::min(text.find_first_of("/?"), text.size());
        if (end == 0) return refuse("the request target names no host");
        text.remove_prefix(end);
        if (text.empty()) text = "/";
    }
    auto const mark = std::min(text.find('?'), text.size());
    if (!text.starts_with('/')) return refuse("the request target does not begin with '/'");
    if (text.find('#') != std::string_view::npos)
        return refuse("the request target has a fragment ('#')");
    VFMGR_TRY(std::string path, decode(text.substr(0, mark), Part::path));
    VFMGR_TRY(auto query, parse_query(text.substr(std::min(mark + 1, text.size()))));
    return RequestTarget{std::move(path), std::move(query)};
}

std::string format_target(RequestTarget const& target) {
    std::string out;
    encode(out, target.path.empty() ? "/" : target.path, "/:@!$'()*,;=");
    char separator = '?';
    for (auto const& [name, value] : target.query) {
        out += separator;
        encode(out, name, "");
        out += '=';
        encode(out, value, ":/,");
        separator = '&';
    }
    return out;
}

}  // namespace vfmgr::http
