// SPDX-License-Identifier: Apache-2.0
#include "api/types/time.hpp"

#include <fmt/format.h>

#include "api/types/text.hpp"

namespace vfmgr {

namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

class RealClock final : public Clock {
  public:
    // Only as precise as its text, so a stored value reads back equal.
    Time now() const override { return floor<milliseconds>(std::chrono::system_clock::now()); }
    Deadline steady_now() const override { return std::chrono::steady_clock::now(); }
};

// Reads fixed-width fields from the front; remembers the first failure.
class Scanner {
  public:
    explicit Scanner(std::string_view rest) : rest_(rest) {}
    unsigned number(std::size_t digits, unsigned max) {
        auto const value = parse_digits(rest_.substr(0, digits),
                                        {.digits_min = digits, .digits_max = digits, .max = max});
        if (!value)
            failed_ = true;
        else
            rest_.remove_prefix(digits);
        return value ? static_cast<unsigned>(*value) : 0;
    }
    bool skip(char expected) {
        if (rest_.empty() || rest_.front() != expected) return false;
        rest_.remove_prefix(1);
        return true;
    }
    void require(char expected) {
        if (!skip(expected)) failed_ = true;
    }
    nanoseconds fraction() {
        auto const digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
        if (digits == 0 || digits > 9) {
            failed_ = true;
            return {};
        }
        std::uint64_t value = *parse_digits(rest_.substr(0, digits), {.digits_max = 9});
        for (std::size_t i = digits; i < 9; ++i) value *= 10;
        rest_.remove_prefix(digits);
        return nanoseconds(value);
    }
    [[nodiscard]] bool ended_well() const { return !failed_ && rest_.empty(); }

  private:
    std::string_view rest_;
    bool failed_ = false;
};

minutes parse_offset(Scanner& scanner) {
    if (scanner.skip('Z')) return {};
    int const sign = scanner.skip('-') ? -1 : 1;
    if (sign == 1) scanner.require('+');
    auto const offset_hours = scanner.number(2, 23);
    scanner.require(':');
    auto const offset = hours(offset_hours) + minutes(scanner.number(2, 59));
    return sign * offset;
}

}  // namespace

std::string to_rfc3339(Time time) {
    auto const day = floor<days>(time);
    std::chrono::year_month_day const date{day};
    std::chrono::hh_mm_ss const clock{floor<milliseconds>(time - day)};
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                       clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                       clock.subseconds().count());
}

std::optional<Time> parse_rfc3339(std::string_view text) {
    Scanner scanner(text);
    auto const year = scanner.number(4, 2200);  // 64-bit nanoseconds end in 2262
    scanner.require('-');
    auto const month = scanner.number(2, 12);
    scanner.require('-');
    auto const day = scanner.number(2, 31);
    scanner.require('T');
    auto const hour = scanner.number(2, 23);
    scanner.require(':');
    auto const minute = scanner.number(2, 59);
    scanner.require(':');
    auto const second = scanner.number(2, 59);
    auto const fraction = scanner.skip('.') ? scanner.fraction() : nanoseconds{};
    auto const offset = parse_offset(scanner);
    std::chrono::year_month_day const date{std::chrono::year(static_cast<int>(year)),
                                           std::chrono::month(month), std::chrono::day(day)};
    if (!scanner.ended_well() || year < 1970 || !date.ok()) return std::nullopt;
    Time const instant = std::chrono::sys_days(date) + hours(hour) + minutes(minute) +
                         seconds(second) + fraction - offset;
    // An instant that its offset moves out of these years could not be read again.
    constexpr std::chrono::sys_days end{std::chrono::year(2201) / 1 / 1};
    if (instant < Time{} || instant >= end) return std::nullopt;
    return instant;
}

Clock& system_clock() {
    static RealClock clock;
    return clock;
}

}  // namespace vfmgr
