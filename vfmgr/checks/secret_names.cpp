// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/secret_names.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

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
std::vector<std::string> words_of(std::string_view name) {
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
    auto const words = words_of(name);
    auto const all = joined(words);
    auto const has = [&](std::string_view part) { return all.find(part) != all.npos; };
    if (std::ranges::any_of(plain_parts, has)) return Secrecy::plain;
    if (std::ranges::any_of(labelled_parts, has)) return Secrecy::labelled;
    // "PrivateTmp" is none: only the last word counts.
    bool const labelled =
        names_a_key(words) || (!words.empty() && is_one_of(labelled_words, words.back()));
    return labelled ? Secrecy::labelled : Secrecy::none;
}

}  // namespace vfmgr::checks
