// SPDX-License-Identifier: Apache-2.0
// Rates, packets, and the pace at which packets leave. Pure, except the pacer's clock; any thread.
#include "guest-tools/traffic/pacer.hpp"

#include <endian.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>

#include "api/types/text.hpp"
#include "guest-tools/traffic/tally.hpp"

namespace vfmgr::stream {
namespace {

constexpr double rate_max = 10e12;
constexpr std::size_t text_max = 32;

// Takes k, m, g or t, and powers of 1024 with an i after them; leaves the unit.
double take_prefix(std::string_view& unit) {
    constexpr std::string_view prefixes = "kmgt";
    auto const at = unit.empty() ? std::string_view::npos : prefixes.find(unit.front());
    if (at == std::string_view::npos) return 1;
    unit.remove_prefix(1);
    bool const binary = unit.starts_with('i');
    if (binary) unit.remove_prefix(1);
    double factor = 1;
    for (std::size_t i = 0; i <= at; ++i) factor *= binary ? 1024 : 1000;
    return factor;
}

// Takes digits, and a point with digits if there is a fraction; leaves the rest.
std::optional<double> take_number(std::string_view& text) {
    double number = 0;
    // Accepts no sign, and neither "inf" nor "nan", which from_chars() would take.
    if (text.empty() || std::string_view("0123456789.").find(text.front()) == text.npos)
        return std::nullopt;
    auto const [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc{}) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return number;
}

}  // namespace

Result<std::uint64_t> parse_rate(std::string_view text) {
    std::string lower(text.substr(0, text_max));
    std::ranges::transform(lower, lower.begin(), [](char ch) {
        return ch >= 'A' && ch <= 'Z' ? static_cast<char>(ch - 'A' + 'a') : ch;
    });
    std::string_view unit(lower);
    auto const number = take_number(unit);
    double factor = take_prefix(unit);
    bool good = number && text.size() <= text_max;
    if (unit == "bps")
        factor *= 8;
    else
        good = good && (unit == "bit" || (unit.empty() && factor == 1));
    // Ignores the error of a fraction of a bit that binary fractions leave.
    double const rate = good ? std::floor(*number * factor + 1e-6) : 0;
    if (rate >= 1 && rate <= rate_max) return static_cast<std::uint64_t>(rate);
    return fail(Problem::invalid_request, fmt::format("{} is not a rate", quoted(text)),
                "write it as tc does: 100mbit, 2.5gbit, 500kbit; up to 10tbit");
}

namespace {

constexpr std::size_t number_at = 8, check_at = 16, pattern_at = 24;

void put(std::span<std::byte> packet, std::size_t at, std::uint64_t value) {
    auto const little = htole64(value);
    std::memcpy(packet.data() + at, &little, sizeof little);
}

std::uint64_t get(std::span<std::byte const> packet, std::size_t at) {
    std::uint64_t little = 0;
    std::memcpy(&little, packet.data() + at, sizeof little);
    return le64toh(little);
}

// Hashes run, number and length: each of their bits changes about half of the check (splitmix64's
// mixing).
std::uint64_t check_of(std::uint64_t run, std::uint64_t number, std::size_t bytes) {
    auto mixed = run ^ (number * 0x9e3779b97f4a7c15) ^ bytes;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

}  // namespace

void prepare_packet(std::span<std::byte> packet, std::uint64_t run) {
    put(packet, 0, run);
    for (std::size_t i = pattern_at; i < packet.size(); ++i)
        packet[i] = static_cast<std::byte>(i * 31);
}

void number_packet(std::span<std::byte> packet, std::uint64_t run, std::uint64_t number) {
    auto const check = check_of(run, number, packet.size());
    put(packet, number_at, number);
    put(packet, check_at, check);
    put(packet, packet.size() - sizeof check, check);
}

std::optional<std::uint64_t> packet_number(std::span<std::byte const> packet, std::uint64_t run) {
    if (packet.size() < packet_bytes_min || get(packet, 0) != run) return std::nullopt;
    auto const number = get(packet, number_at);
    auto const check = check_of(run, number, packet.size());
    if (number >= sequence_max || get(packet, check_at) != check ||
        get(packet, packet.size() - sizeof check) != check)
        return std::nullopt;
    return number;
}

namespace {

__extension__ using Wide = unsigned __int128;

}  // namespace

// Splits off whole seconds: a stream of months neither accumulates rounding errors nor overflows.
Deadline Pacer::due(std::uint64_t packet) const {
    constexpr std::uint64_t second = 1'000'000'000;
    constexpr std::uint64_t never = 1'000'000'000;  // seconds: 31 years
    auto const cost = Wide{packet} * pace_.cost;
    auto const whole = cost / pace_.per_second;
    if (whole >= never) return start_ + std::chrono::seconds(never);
    auto const seconds = static_cast<std::uint64_t>(whole);
    // Rounds up: never earlier than the rate allows.
    auto const rest = (cost % pace_.per_second * second + pace_.per_second - 1) / pace_.per_second;
    return start_ + std::chrono::seconds(seconds) +
           std::chrono::nanoseconds(static_cast<std::uint64_t>(rest));
}

std::uint64_t Pacer::packets_in(std::chrono::milliseconds time) const {
    auto const amount = Wide{static_cast<std::uint64_t>(time.count())} * pace_.per_second / 1000;
    return std::max<std::uint64_t>(static_cast<std::uint64_t>(amount / pace_.cost), 1);
}

void Pacer::count_sent(std::uint64_t first, std::uint64_t count, Deadline now) {
    ++lateness_.chunks;
    if (now < due(first + count)) return;
    auto const behind = std::chrono::duration_cast<std::chrono::microseconds>(now - due(first));
    ++lateness_.late;
    lateness_.late_max_us =
        std::max(lateness_.late_max_us, static_cast<std::uint64_t>(behind.count()));
}

}  // namespace vfmgr::stream
