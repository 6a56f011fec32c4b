// SPDX-License-Identifier: Apache-2.0
// Text for people and terminals. Pure; any thread.
#include "api/types/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace vfmgr {
namespace {

struct Character {
    char32_t code = 0;
    std::size_t bytes = 1;
    bool valid = false;
};

// Decodes the first code point; only the shortest form is valid UTF-8.
Character first_of(std::string_view text) {
    auto const lead = static_cast<unsigned char>(text[0]);
    if (lead < 0x80) return {lead, 1, true};
    std::size_t const bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
    char32_t code = lead & (0xffU >> (bytes + 1));
    for (std::size_t i = 1; i < bytes; ++i) {
        auto const next = static_cast<unsigned char>(text[i]);
        if ((next & 0xc0U) != 0x80) return {};
        code = (code << 6U) | (next & 0x3fU);
    }
    constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool const surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < least[bytes] || code > 0x10ffff || surrogate) return {};
    return {code, bytes, true};
}

bool steers(char32_t code) {
    bool const control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    bool const line = code == 0x2028 || code == 0x2029;
    bool const direction = code == 0x61c || code == 0x200e || code == 0x200f ||
                           (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    bool const unseen_tag = code >= 0xe0000 && code <= 0xe007f;
    return control || line || direction || unseen_tag;
}

bool belongs(char32_t code, std::string_view behind, Shown as) {
    if (as == Shown::word) return false;
    return code == '\n' || code == '\t' || (code == '\r' && behind.starts_with('\n'));
}

std::string escape_of(char32_t code, Shown as) {
    auto const number = static_cast<std::uint32_t>(code);
    bool const in_document = as == Shown::json || as == Shown::yaml;
    if (!in_document && number < 0x80) return fmt::format("\\x{:02x}", number);
    if (!in_document || number < 0x10000) return fmt::format("\\u{:04x}", number);
    if (as == Shown::yaml) return fmt::format("\\U{:08x}", number);
    auto const pair = number - 0x10000;
    return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (pair >> 10U), 0xdc00 + (pair & 0x3ffU));
}

}  // namespace

std::string escaped(std::string_view text, Shown as) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        auto const character = first_of(text);
        auto const behind = text.substr(character.bytes);
        if (!character.valid)
            out += as == Shown::json || as == Shown::yaml
                       ? std::string("\\ufffd")
                       : fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
        else if (steers(character.code) && !belongs(character.code, behind, as))
            out += escape_of(character.code, as);
        else
            out += text.substr(0, character.bytes);
        text = behind;
    }
    return out;
}

std::uint64_t stable_hash(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (char const c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return hash;
}

bool valid_utf8(std::string_view text) {
    while (!text.empty()) {
        auto const character = first_of(text);
        if (!character.valid) return false;
        text.remove_prefix(character.bytes);
    }
    return true;
}

std::size_t characters_in(std::string_view utf8) {
    return static_cast<std::size_t>(std::ranges::count_if(
        utf8, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80; }));
}

// An earlier failed write leaves a mark, but no errno.
Result<void> flush_output() {
    errno = 0;
    bool const flushed = std::fflush(stdout) == 0;
    auto const error = errno;
    if (flushed && std::ferror(stdout) == 0) return {};
    Error out{Problem::internal, "the answer could not be written to standard output",
              "write to a place that has room, and try again"};
    if (!flushed) out.causes.push_back(errno_cause("write", error));
    return fail(std::move(out));
}

bool is_uuid(std::string_view text) {
    if (text.size() != 36) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        bool const dash = i == 8 || i == 13 || i == 18 || i == 23;
        bool const digit = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
        if (dash ? text[i] != '-' : !digit) return false;
    }
    return true;
}

bool is_hex(std::string_view text, std::size_t digits) {
    return text.size() == digits &&
           text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace vfmgr
