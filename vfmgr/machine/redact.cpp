// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/redact.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "vfmgr/machine/redact_values.hpp"

namespace vfmgr::checks {
namespace {

constexpr auto plain_parts = std::to_array<std::string_view>(
    {"password", "passwd", "passphrase", "passcode", "secret", "token", "psk", "apikey",
     "privatekey", "presharedkey", "sharedkey", "bearer", "authorization", "sshpass",
     "wirelesskey"});
constexpr auto labelled_parts =
    std::to_array<std::string_view>({"credential", "cookie", "community", "keymaterial"});
// Words that must stand alone: "DB_PASS" and "dbPass", but not "bypass".
constexpr auto labelled_words = std::to_array<std::string_view>(
    {"pass", "pwd", "pw", "pin", "cred", "creds", "cak", "private", "shared", "preshared"});
// What may follow "key" in a key's name: "client-key-data".
constexpr auto key_forms =
    std::to_array<std::string_view>({"data", "value", "pem", "hex", "base64", "b64", "raw"});
// RDMA and InfiniBand numbers that decide which peer may access which memory.
constexpr auto rdma_keys =
    std::to_array<std::string_view>({"pkey", "qkey", "lkey", "rkey", "mkey"});

bool is_upper(char c) {
    return c >= 'A' && c <= 'Z';
}
char lower(char c) {
    return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}

template <std::size_t N>
bool is_one_of(std::array<std::string_view, N> const& all, std::string_view word) {
    return std::ranges::find(all, word) != all.end();
}

// "wep-key0", "PrivateKey": "wep key", "private key".
std::vector<std::string> words_in_name(std::string_view name) {
    std::vector<std::string> words(1);
    for (std::size_t i = 0; i < name.size(); ++i) {
        char const c = name[i];
        bool const letter = (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9');
        bool const begins = i > 0 && is_upper(c) && !is_upper(name[i - 1]);
        if ((!letter || begins) && !words.back().empty()) words.emplace_back();
        if (letter) words.back() += lower(c);
    }
    for (auto& word : words)  // "psk1", but not a number as a whole
        if (auto const end = word.find_last_not_of("0123456789"); end != word.npos)
            word.resize(end + 1);
    std::erase(words, "");
    return words;
}

std::string joined(std::vector<std::string> const& words) {
    std::string all;
    for (auto const& word : words) all += word;
    return all;
}

bool names_a_key(std::vector<std::string> words) {
    while (!words.empty() && is_one_of(key_forms, words.back())) words.pop_back();
    if (words.empty()) return false;
    auto all = joined(words);
    if (all.ends_with("keys")) all.pop_back();
    if (!all.ends_with("key")) return false;
    auto const is_rdma = [&](std::string_view one) { return all.ends_with(one); };
    // "pkey" and "max_p_key", but not "ipkey".
    auto const& last = words.back();
    bool const split = words.size() > 1 && (last == "key" || last == "keys");
    bool const whole =
        is_one_of(rdma_keys, last) ||
        (last.ends_with('s') && is_one_of(rdma_keys, last.substr(0, last.size() - 1)));
    return !(whole || (split && words[words.size() - 2].size() == 1 &&
                       std::ranges::any_of(rdma_keys, is_rdma)));
}

}  // namespace

Secrecy secrecy_of(std::string_view name) {
    auto const words = words_in_name(name);
    auto const all = joined(words);
    auto const has = [&](std::string_view part) { return all.find(part) != all.npos; };
    if (std::ranges::any_of(plain_parts, has)) return Secrecy::plain;
    if (std::ranges::any_of(labelled_parts, has)) return Secrecy::labelled;
    // "PrivateTmp" is no secret: only the last word counts.
    bool const labelled =
        names_a_key(words) || (!words.empty() && is_one_of(labelled_words, words.back()));
    return labelled ? Secrecy::labelled : Secrecy::none;
}

namespace {

// Spans are in order and don't overlap.
std::string without(std::string_view text, std::vector<Span> const& spans) {
    std::string out;
    std::size_t kept = 0;
    for (auto const& span : spans) {
        out.append(text.substr(kept, span.begin - kept));
        out.append(span.below ? " " : "").append(removed);
        kept = span.end;
    }
    return out.append(text.substr(kept));
}

std::string_view part(std::string_view text, Span const& span) {
    return text.substr(span.begin, span.end - span.begin);
}

// Removes all keys but public ones; without an end line, the rest of the text is the key.
std::string without_pem_keys(std::string_view text) {
    constexpr std::string_view begin = "-----BEGIN ", end = "-----END ";
    std::vector<Span> spans;
    for (auto at = text.find(begin); at != text.npos; at = text.find(begin, at)) {
        at += begin.size();
        auto const line = end_of_line(text, at);
        auto const label = text.substr(at, line - at);
        bool const is_key = label.find("KEY") != label.npos || label.find("key") != label.npos;
        if (!is_key || label.find("PUBLIC") != label.npos) continue;
        auto const last = std::min(text.find(end, at), text.size());
        auto const body = std::min(text.find("-----", at), last);
        auto const first = std::min(body + 5, last);
        if (first < last && text.substr(first, last - first) != removed)
            spans.push_back({first, last, false});
        at = last;
    }
    return without(text, spans);
}

// <password type='plain'>x</password>
std::string without_element_texts(std::string_view text) {
    std::vector<Span> spans;
    for (auto at = text.find('<'); at != text.npos; at = text.find('<', at)) {
        auto const name = next_name(text, ++at);
        if (!name || name->begin != at || secrecy_of(part(text, *name)) == Secrecy::none) continue;
        auto const close = text.find('>', at);
        if (close == text.npos) break;
        if (text[close - 1] == '/') continue;
        auto const end = std::min(text.find("</", close), text.size());
        if (end > close + 1) spans.push_back({close + 1, end, false});
        at = end;
    }
    return without(text, spans);
}

// https://user:password@host, https://token@host
std::string without_userinfo(std::string_view text) {
    std::vector<Span> spans;
    for (auto at = text.find("://"); at != text.npos; at = text.find("://", at)) {
        auto const scheme = text.substr(0, at);
        at += 3;
        auto const end =
            std::min(text.find_first_of(std::string_view(" \t\r\n\0\"'<>", 9), at), text.size());
        auto const place = text.substr(at, end - at);
        auto const slash = std::min(place.find('/'), place.size());
        auto sign = place.substr(0, slash).rfind('@');
        auto const colon = place.substr(0, slash).find(':');
        // A password may hold a slash, and a path an '@'; a port is digits.
        bool const port =
            colon != place.npos &&
            place.substr(colon + 1, slash - colon - 1).find_first_not_of("0123456789") ==
                place.npos;
        if (sign == place.npos && colon != place.npos && !port) sign = place.rfind('@');
        if (sign == place.npos || sign == 0) continue;
        auto const user = place.substr(0, sign);
        bool const only_name =
            user.find(':') == user.npos && !scheme.ends_with("http") && !scheme.ends_with("https");
        if (!only_name && user != removed) spans.push_back({at, at + sign, false});
        at += sign;
    }
    return without(text, spans);
}

bool names_a_section(std::string_view line) {
    return line.starts_with('[') && line.find(']') != line.npos;
}

// Removes every value below [vpn-secrets] of a keyfile.
std::string without_secret_sections(std::string_view text) {
    std::vector<Span> spans;
    bool secret = false;
    for (std::size_t at = 0; at < text.size(); at = end_of_line(text, at) + 1) {
        auto const line = text.substr(at, end_of_line(text, at) - at);
        if (names_a_section(line)) secret = secrecy_of(line) == Secrecy::plain;
        auto const equals = line.find('=');
        if (!secret || names_a_section(line) || equals == line.npos) continue;
        if (equals + 1 < line.size()) spans.push_back({at + equals + 1, at + line.size(), false});
    }
    return without(text, spans);
}

// -object secret,id=a,data=x
bool is_secret_here(std::string_view text, Span const& name, std::string_view word) {
    if (word != "data") return false;
    auto const line = text.find_last_of(line_ends, name.begin);
    auto const start = line == text.npos ? 0 : line + 1;
    auto const before = text.substr(start, name.begin - start);
    return before.find("secret") != before.npos;
}

std::string without_named(std::string_view text) {
    std::vector<Span> spans;
    for (auto name = next_name(text, 0); name; name = next_name(text, name->end)) {
        auto const word = part(text, *name);
        auto secrecy = secrecy_of(word);
        if (secrecy == Secrecy::none && is_secret_here(text, *name, word))
            secrecy = Secrecy::labelled;
        if (secrecy == Secrecy::none) continue;
        auto const value = value_of(text, *name, secrecy);
        if (!value || value->end <= value->begin) continue;
        spans.push_back(*value);
        name->end = value->end;
    }
    return without(text, spans);
}

// curl's and wget's: -u name:password
std::string without_users(std::string_view text) {
    std::vector<Span> spans;
    for (auto name = next_name(text, 0); name; name = next_name(text, name->end)) {
        auto const word = part(text, *name);
        if (word != "-u" && word != "--user" && word != "--proxy-user") continue;
        auto const begin = std::min(text.find_first_not_of(" \t=\"'", name->end), text.size());
        auto const end =
            std::min(text.find_first_of(std::string_view(" \t\r\n\0\"'", 7), begin), text.size());
        auto const colon = text.substr(begin, end - begin).find(':');
        if (colon == text.npos || begin + colon + 1 == end) continue;
        spans.push_back({begin + colon + 1, end, false});
        name->end = end;
    }
    return without(text, spans);
}

constexpr Letters base64_letters{
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"};

// Removes the words of `letters` that `is_secret(word, what follows)` accepts.
template <class Judge>
std::string without_words(std::string_view text, Letters const& letters, Judge is_secret) {
    std::vector<Span> spans;
    for (auto begin = letters.first(text, 0); begin < text.size();) {
        auto const end = letters.behind(text, begin);
        if (is_secret(text.substr(begin, end - begin), text.substr(end)))
            spans.push_back({begin, end, false});
        begin = letters.first(text, end);
    }
    return without(text, spans);
}

// 32 bytes, as WireGuard writes a key: `wg show all dump` prints no name for them.
bool is_wireguard_key(std::string_view word, std::string_view behind) {
    constexpr std::size_t letters = 43;
    return word.size() == letters && behind.starts_with('=') && !behind.starts_with("==");
}

bool is_known_token(std::string_view word, std::string_view) {
    constexpr std::size_t least = 20;
    constexpr auto prefixes = std::to_array<std::string_view>(
        {"vfm_", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "eyJ"});
    auto const starts = [&](std::string_view prefix) { return word.starts_with(prefix); };
    return word.size() >= least && std::ranges::any_of(prefixes, starts);
}

std::string redacted_once(std::string_view text) {
    auto out = without_pem_keys(text);
    out = without_element_texts(out);
    out = without_userinfo(out);
    out = without_secret_sections(out);
    out = without_users(out);
    out = without_named(out);
    out = without_words(out, base64_letters, is_wireguard_key);
    return without_words(out, name_letters, is_known_token);
}

}  // namespace

// Repeats until nothing changes: a removal can bring a name before another value.
std::string redact(std::string_view text) {
    constexpr int rounds_max = 64;
    std::string out(text);
    for (int round = 0; round < rounds_max; ++round) {
        auto next = redacted_once(out);
        if (next == out) break;
        out = std::move(next);
    }
    return out;
}

}  // namespace vfmgr::checks
