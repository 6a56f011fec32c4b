// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/log_lines.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "api/types/text.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

// Matches dates: "0" is a digit, "?" anything, "_" a blank or a digit, the rest stands for itself.
bool is_like(std::string_view text, std::string_view form) {
    auto const fits = [](char one, char expected) {
        bool const digit = one >= '0' && one <= '9';
        if (expected == '0') return digit;
        if (expected == '_') return digit || one == ' ';
        return expected == '?' || one == expected;
    };
    return text.size() == form.size() && std::ranges::equal(text, form, fits);
}

bool takes_form(std::string_view& text, std::string_view form) {
    if (!is_like(text.substr(0, form.size()), form)) return false;
    text.remove_prefix(form.size());
    return true;
}

bool takes_word(std::string_view& text, std::string_view word) {
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    return true;
}

template <std::size_t count>
bool is_one_of(std::string_view word, std::array<std::string_view, count> const& words) {
    return std::ranges::find(words, word) != words.end();
}

bool is_month(std::string_view word) {
    static constexpr std::array<std::string_view, 12> months{
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    return is_one_of(word, months);
}

// The low three bits of syslog's priority; the others are the facility.
int level_of(std::uint64_t priority) {
    return static_cast<int>(priority & 7U);
}

// "6,339,5140900,-;text": level and facility, number, microseconds, flags.
std::optional<LogLine> kmsg_record(std::string_view line, std::uint64_t& number) {
    auto rest = line;
    auto const level = take_until(rest, ',');
    auto const sequence = take_until(rest, ',');
    auto const micros = take_until(rest, ',');
    auto const text = line.find(';');
    if (!level || !sequence || !micros || text == line.npos) return std::nullopt;
    auto const priority = parse_digits(*level, {});
    auto const parsed_number = parse_digits(*sequence, {});
    auto const parsed_micros = parse_digits(*micros, {});
    if (!priority || !parsed_number || !parsed_micros) return std::nullopt;
    number = *parsed_number;
    return LogLine{static_cast<double>(*parsed_micros) / 1e6, line.substr(text + 1),
                   level_of(*priority)};
}

// "<6>" of dmesg -r and of a console; "kern  :info  : " of dmesg -x.
std::optional<int> take_level(std::string_view& line) {
    static constexpr std::array<std::string_view, 12> facilities{
        "kern", "user", "mail", "daemon", "auth",     "syslog",
        "lpr",  "news", "uucp", "cron",   "authpriv", "ftp"};
    static constexpr std::array<std::string_view, 8> levels{"emerg", "alert",  "crit", "err",
                                                            "warn",  "notice", "info", "debug"};
    auto rest = line;
    if (takes_word(rest, "<")) {
        auto const level = take_until(rest, '>');
        auto const priority = level ? parse_digits(*level, {.digits_max = 3}) : std::nullopt;
        if (!priority) return std::nullopt;
        line = rest;
        return level_of(*priority);
    }
    auto const facility = take_until(rest, ':');
    auto const level = take_until(rest, ':');
    if (!facility || !level || !takes_word(rest, " ")) return std::nullopt;
    auto const known = std::ranges::find(levels, trimmed(*level));
    if (!is_one_of(trimmed(*facility), facilities) || known == levels.end()) return std::nullopt;
    line = rest;
    return static_cast<int>(known - levels.begin());
}

std::optional<double> seconds_in(std::string_view text) {
    auto const dot = text.find('.');
    if (dot == text.npos) return std::nullopt;
    auto const whole = parse_digits(text.substr(0, dot), {.digits_max = 12});
    auto const micros = parse_digits(text.substr(dot + 1), {.digits_min = 6, .digits_max = 6});
    if (!whole || !micros) return std::nullopt;
    return static_cast<double>(*whole) + static_cast<double>(*micros) / 1e6;
}

// "Sun Dec  1 14:54:40 2024" of dmesg -T, "Dec01 14:54" and "+0.000007" of dmesg -H.
bool is_date_of_dmesg(std::string_view text) {
    if (is_like(text, "??? ??? _0 00:00:00 0000")) return is_month(text.substr(4, 3));
    if (is_like(text, "???00 00:00")) return is_month(text.substr(0, 3));
    auto const since = trimmed(text);
    return since.starts_with('+') && seconds_in(since.substr(1));
}

// "[   11.512808] ", and "[   11.512808][  T124] " of kernels that print the caller.
bool takes_brackets(std::string_view& line, double& seconds) {
    auto rest = line;
    if (!takes_word(rest, "[")) return false;
    auto const time = take_until(rest, ']');
    if (!time) return false;
    auto const since_boot = seconds_in(trimmed(*time));
    if (!since_boot && !is_date_of_dmesg(*time)) return false;
    if (takes_word(rest, "[")) {
        auto const caller = take_until(rest, ']');
        auto const who = caller ? trimmed(*caller) : std::string_view();
        bool const known = who.starts_with('T') || who.starts_with('C');
        if (!known || !parse_digits(who.substr(1), {})) return false;
    }
    if (!takes_word(rest, " ") && !rest.empty()) return false;
    seconds = since_boot.value_or(0);
    line = rest;
    return true;
}

// "+0000", "+00:00", "-08:00", "Z".
bool takes_zone(std::string_view& text) {
    if (takes_word(text, "Z")) return true;
    if (!text.starts_with('+') && !text.starts_with('-')) return false;
    auto rest = text.substr(1);
    if (!takes_form(rest, "00:00") && !takes_form(rest, "0000")) return false;
    text = rest;
    return true;
}

// "2025-02-10T16:28:06,502716+00:00 " of dmesg, "2025-02-10T16:28:06+0000 " of journalctl -o
// short-iso, "2025-02-10T16:28:06.502716+01:00 " of rsyslog.
bool takes_iso_time(std::string_view& line) {
    auto rest = line;
    if (!takes_form(rest, "0000-00-00?00:00:00")) return false;
    if (line[10] != 'T' && line[10] != ' ') return false;
    if (rest.starts_with(',') || rest.starts_with('.')) {
        auto const digits = rest.find_first_not_of("0123456789", 1);
        rest.remove_prefix(std::min(digits, rest.size()));
    }
    if (!takes_zone(rest) || !takes_word(rest, " ")) return false;
    line = rest;
    return true;
}

// "Nov 22 10:00:00 " of syslog and journalctl, with "10:00:00.123456" for short-precise.
bool takes_syslog_time(std::string_view& line) {
    auto rest = line;
    if (!takes_form(rest, "??? _0 00:00:00") || !is_month(line.substr(0, 3))) return false;
    takes_form(rest, ".000000");
    if (!takes_word(rest, " ")) return false;
    line = rest;
    return true;
}

// "host kernel: ".
bool takes_host(std::string_view& line) {
    constexpr std::string_view mark = " kernel: ";
    auto const at = line.find(mark);
    if (at == line.npos || at == 0 || line.find(' ') != at) return false;
    line.remove_prefix(at + mark.size());
    return true;
}

// Drops lines of other programs, and journalctl's own: "-- Boot 1f3a… --".
std::optional<LogLine> line_with_time(std::string_view line) {
    if (line.starts_with("-- ") && line.ends_with(" --")) return std::nullopt;
    LogLine parsed;
    parsed.level = take_level(line);
    bool const syslog = takes_syslog_time(line);
    bool const dated = syslog || takes_iso_time(line);
    bool const bracketed = takes_brackets(line, parsed.seconds);
    bool const of_host = takes_host(line);
    if (syslog && !bracketed && !of_host) return std::nullopt;
    // rsyslog puts the kernel's own time after the host.
    if (dated && of_host) takes_brackets(line, parsed.seconds);
    parsed.text = line;
    return parsed;
}

}  // namespace

KernelLog parse_kernel_log(std::string_view text) {
    KernelLog log;
    bool first = true, behind_record = false;
    for (auto line : lines_in(text)) {
        if (line.ends_with('\r')) line.remove_suffix(1);
        // A record's further lines describe its device: " SUBSYSTEM=pci".
        if (line.empty() || (behind_record && line.starts_with(' '))) continue;
        std::uint64_t number = UINT64_MAX;
        auto const record = kmsg_record(line, number);
        behind_record = record.has_value();
        auto const parsed = record ? record : line_with_time(line);
        if (!parsed) continue;
        log.lines.push_back(*parsed);
        log.lines.back().by_device = parse_device_line(parsed->text);
        constexpr std::string_view banner = "Linux version ";
        if (first) log.from_boot = number == 0 || parsed->text.starts_with(banner);
        first = false;
    }
    return log;
}

}  // namespace vfmgr::checks
