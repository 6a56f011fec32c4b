// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/redact_values.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::string_view blanks = " \t";
constexpr std::size_t lines_bytes_max = 16384;  // of a value that spans several lines

bool is_any(char c, std::string_view of) {
    return of.find(c) != of.npos;
}

std::size_t not_of(std::string_view text, std::string_view what, std::size_t at) {
    return std::min(text.find_first_not_of(what, at), text.size());
}

std::size_t start_of_line(std::string_view text, std::size_t at) {
    auto const before = at == 0 ? text.npos : text.find_last_of(line_ends, at - 1);
    return before == text.npos ? 0 : before + 1;
}

// Nothing before the name could be part of a command or of another value.
bool begins_line(std::string_view text, std::size_t name) {
    auto const start = start_of_line(text, name);
    auto before = text.substr(start, name - start);
    for (std::string_view const word : {"export ", "setenv ", "set "})
        if (auto const at = before.find(word); at != before.npos)
            before.remove_prefix(at + word.size());
    return before.find_first_not_of(" \t-#;*\"'") == before.npos;
}

// Parses "a\"b" of JSON and C, 'it''s' of YAML, """a"b""" of TOML; an escaped quote ends at the
// next escaped one. npos: it does not end.
std::size_t end_of_quoted(std::string_view text, std::size_t quote, std::size_t limit) {
    char const mark = text[quote];
    bool const escaped = quote > 0 && text[quote - 1] == '\\';
    std::string const triple(3, mark);
    if (text.substr(quote, 3) == triple) {
        auto const end = text.find(triple, quote + 3);
        return end == text.npos ? end : end + 3;
    }
    for (auto at = quote + 1; at < limit; ++at) {
        if (text[at] == '\\' && !escaped && mark == '"') {
            ++at;
        } else if (text[at] == mark) {
            if (mark == '\'' && at + 1 < limit && text[at + 1] == mark) {
                ++at;
                continue;
            }
            return at + 1;
        }
    }
    return text.npos;
}

// Stops after "one two"three, and before the comma of a list.
std::size_t end_of_word(std::string_view text, std::size_t at) {
    auto const line = end_of_line(text, at);
    auto const next = at + 1 < line ? text[at + 1] : ' ';
    if (at < line && is_any(text[at], ",;}])>/") && is_any(next, " \t\"'\\}]>\r")) return at;
    return std::min(text.find_first_of(blanks, at), line);
}

std::size_t end_of_bracketed(std::string_view text, std::size_t open) {
    std::size_t depth = 0;
    auto const limit = std::min(text.size(), open + lines_bytes_max);
    for (auto at = open; at < limit; ++at) {
        if (is_any(text[at], "{[")) ++depth;
        if (is_any(text[at], "}]") && --depth == 0) return at + 1;
    }
    return end_of_line(text, open);
}

std::size_t indent_of(std::string_view text, std::size_t line) {
    auto const first = not_of(text, " ", line);
    // The members of a list may be at the same depth as its name.
    return first - line + (text.substr(first, 2) == "- " ? 1 : 0);
}

// YAML's lines below a name, deeper than it; starts at the end of the name's own line.
std::size_t end_of_block(std::string_view text, std::size_t name) {
    auto const own = name - start_of_line(text, name);
    auto end = end_of_line(text, name);
    while (end < text.size()) {
        auto const line = end + 1;
        auto const next = end_of_line(text, line);
        bool const empty = text.substr(line, next - line).find_first_not_of(" \t\r") == text.npos;
        if (line >= text.size() || (!empty && indent_of(text, line) <= own)) break;
        end = next;
    }
    return end;
}

std::size_t end_of_rest(std::string_view text, std::size_t at) {
    auto end = end_of_line(text, at);
    while (end < text.size() && end > at && text[end - 1] == '\\') end = end_of_line(text, end + 1);
    return end;
}

// The quote that encloses the name itself: 'Authorization: Bearer x', "API_KEY=a b".
std::optional<char> quote_around(std::string_view text, Span const& name) {
    auto at = name.begin;
    while (at > 0 && text[at - 1] == '-') --at;
    if (at == 0 || !is_any(text[at - 1], "\"'")) return std::nullopt;
    return name.end < text.size() && text[name.end] == text[at - 1] ? std::nullopt
                                                                    : std::optional(text[at - 1]);
}

bool takes_the_line(std::string_view name) {
    auto const all = lowered(name);
    auto const has = [&](std::string_view word) { return all.find(word) != all.npos; };
    return has("authorization") || has("cookie") || has("sshpass");
}

// "=", ":", "==", ":=", "=>".
std::size_t behind_sign(std::string_view text, std::size_t at) {
    at = not_of(text, " \t=:", at);
    bool const arrow = at < text.size() && text[at] == '>' && text[at - 1] == '=';
    return arrow ? not_of(text, blanks, at + 1) : at;
}

std::size_t end_of_value(std::string_view text, Span const& name, std::size_t at, bool labelled) {
    auto const quote = text[at] == '\\' ? not_of(text, "\\", at) : at;
    bool const first = labelled && begins_line(text, name.begin);
    bool const again = text.substr(at).starts_with(removed) && !quote_around(text, name);
    if (again || (quote < text.size() && is_any(text[quote], "\"'"))) {
        auto const line = end_of_line(text, at);
        auto const limit = first ? std::min(text.size(), at + lines_bytes_max) : line;
        auto const end = again ? at + removed.size() : end_of_quoted(text, quote, limit);
        if (end == text.npos) return line;
        // Keyfiles have no quoting: quotes belong to the value.
        bool const keyfile = first && text[not_of(text, "\"'\\] \t", name.end)] == '=';
        return keyfile ? end_of_line(text, end) : end_of_word(text, end);
    }
    if (auto const around = quote_around(text, name)) {
        auto const line = end_of_line(text, at);
        return std::min(text.find(*around, at), line);
    }
    if (labelled && is_any(text[at], "{[")) {
        auto const end = end_of_bracketed(text, at);
        return first ? end_of_line(text, end) : end_of_word(text, end);
    }
    if (labelled && is_any(text[at], "|>") && text[name.end] == ':')
        return end_of_block(text, name.begin);
    if (first || takes_the_line(text.substr(name.begin, name.end - name.begin)))
        return end_of_rest(text, at);
    return std::min(text.find_first_of(blanks, at), end_of_line(text, at));
}

// "true" is no key, and is worth keeping.
bool is_switch(std::string_view value) {
    constexpr auto switches = std::to_array<std::string_view>(
        {"yes", "no", "true", "false", "on", "off", "0", "1", "null", "none"});
    auto const end = value.find_last_not_of(" \t\r,;\"'");
    if (end != value.npos) value = value.substr(0, end + 1);
    return std::ranges::find(switches, value) != switches.end();
}

}  // namespace

std::size_t end_of_line(std::string_view text, std::size_t at) {
    return std::min(text.find_first_of(line_ends, at), text.size());
}

std::optional<Span> next_name(std::string_view text, std::size_t at) {
    auto const begin = name_letters.first(text, at);
    if (begin == text.size()) return std::nullopt;
    return Span{begin, name_letters.behind(text, begin)};
}

std::optional<Span> value_of(std::string_view text, Span const& name, Secrecy secrecy) {
    auto at = not_of(text, "\"'\\]", name.end);
    auto const behind = not_of(text, blanks, at);
    bool const labelled = behind < text.size() && is_any(text[behind], "=:");
    if (!labelled && (secrecy != Secrecy::plain || behind == at)) return std::nullopt;
    if (!labelled && name.begin > 0 && text[name.begin - 1] == '<') return std::nullopt;
    at = labelled ? behind_sign(text, behind) : behind;
    bool const nothing = at >= text.size() || is_any(text[at], "\r\n") || text[at] == '\0';
    if (nothing && labelled && text[behind] == ':') {  // YAML: the lines below
        auto const line = end_of_line(text, name.end);
        auto const end = end_of_block(text, name.begin);
        if (end == line) return std::nullopt;
        return Span{line, end, true};
    }
    if (nothing) return std::nullopt;
    Span const value{at, end_of_value(text, name, at, labelled), false};
    if (secrecy == Secrecy::labelled && is_switch(text.substr(at, value.end - at)))
        return std::nullopt;
    return value;
}

}  // namespace vfmgr::checks
