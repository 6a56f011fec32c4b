// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/latency.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>

#include "api/types/text.hpp"
#include "vfmgr/rdma/completion.hpp"
#include "vfmgr/rdma/counters.hpp"

namespace vfmgr::verify {
namespace {

constexpr double disagreement_max = 0.02;

// Returns 0 when the counter stands still or goes back, as it may when CPUs have separate counters.
double rate_between(Mark const& from, Mark const& to) {
    if (to.ticks <= from.ticks || to.nanoseconds <= from.nanoseconds) return 0;
    return static_cast<double>(to.nanoseconds - from.nanoseconds) /
           static_cast<double>(to.ticks - from.ticks);
}

}  // namespace

std::optional<double> tick_nanoseconds(std::span<Mark const> marks) {
    if (marks.size() < 3) return std::nullopt;
    for (std::size_t i = 1; i < marks.size(); ++i)
        if (rate_between(marks[i - 1], marks[i]) == 0) return std::nullopt;
    auto const& middle = marks[marks.size() / 2];
    auto const whole = rate_between(marks.front(), marks.back());
    auto const apart =
        std::abs(rate_between(marks.front(), middle) - rate_between(middle, marks.back()));
    return apart <= disagreement_max * whole ? std::optional(whole) : std::nullopt;
}

std::optional<cpu_set_t> parse_cpu_list(std::string_view text) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    DigitRules const cpu{.digits_max = 4, .max = CPU_SETSIZE - 1};
    bool more = true;
    while (more) {
        auto const part = text.substr(0, text.find(','));
        more = part.size() < text.size();
        text.remove_prefix(std::min(text.size(), part.size() + 1));
        auto const range = parse_digit_range(part, cpu);
        if (!range) return std::nullopt;
        for (auto number = range->first; number <= range->last; ++number) CPU_SET(number, &cpus);
    }
    return cpus;
}

NearNic::NearNic(std::string const& ifname, std::string const& sysfs) {
    std::ifstream file(pci_netdev(sysfs, ifname) / "device/local_cpulist");
    std::string text;
    auto near = file >> text ? parse_cpu_list(text) : std::nullopt;
    cpu_set_t now;
    if (!near || ::sched_getaffinity(0, sizeof now, &now) != 0) return;
    CPU_AND(&*near, &*near, &now);
    if (CPU_EQUAL(&*near, &now)) return;
    // The kernel refuses an empty set of CPUs.
    if (::sched_setaffinity(0, sizeof *near, &*near) == 0) before_ = now;
}

NearNic::~NearNic() {
    if (before_) ::sched_setaffinity(0, sizeof *before_, &*before_);
}

namespace {

constexpr std::uint64_t warm_up = 16;  // rounds, not counted
constexpr std::size_t samples_max = 100'000;
constexpr std::size_t rounds_by_the_clock = 8;

using Round = std::function<Result<void>()>;

std::size_t rounds_for(Load const& load) {
    return load.messages > 0 ? std::min<std::size_t>(load.messages, samples_max) : samples_max;
}

bool window_is_over(Load const& load, std::uint64_t nanoseconds) {
    return load.messages == 0 &&
           nanoseconds >= static_cast<std::uint64_t>(std::chrono::nanoseconds(load.window).count());
}

struct Samples {
    std::vector<std::uint64_t> taken;  // as `count` counts
    std::vector<Mark> marks;
};

// Runs one round after the other; each is timed from the end of the previous one to its own end.
// Reads the clock between two rounds now and then, never within a timed round.
template <auto count>
Result<Samples> run_rounds(Load const& load, Round const& round) {
    Samples samples;
    auto& [taken, marks] = samples;
    taken.reserve(rounds_for(load));
    marks.push_back({ticks(), raw_nanoseconds()});
    while (taken.size() < rounds_for(load) &&
           !window_is_over(load, marks.back().nanoseconds - marks.front().nanoseconds)) {
        auto last = count();
        for (std::size_t i = 0; i < rounds_by_the_clock && taken.size() < rounds_for(load); ++i) {
            VFMGR_CHECK(round());
            auto const now = count();
            taken.push_back(now - last);
            last = now;
        }
        marks.push_back({ticks(), raw_nanoseconds()});
    }
    return samples;
}

// Returns nanoseconds: by the CPU's counter, or measured again by the clock if the counter turned
// out not to be a clock.
Result<std::vector<std::uint64_t>> sample(Load const& load, Round const& round) {
    for (std::uint64_t i = 0; i < warm_up; ++i) VFMGR_CHECK(round());
    VFMGR_TRY(auto by_ticks, run_rounds<ticks>(load, round));
    auto const rate = tick_nanoseconds(by_ticks.marks);
    if (!rate) {
        VFMGR_TRY(auto by_the_clock, run_rounds<raw_nanoseconds>(load, round));
        return std::move(by_the_clock.taken);
    }
    for (auto& each : by_ticks.taken)
        each = static_cast<std::uint64_t>(std::llround(static_cast<double>(each) * *rate));
    return std::move(by_ticks.taken);
}

// A round takes `share` times the latency.
Result<Measured> latency(Load const& load, unsigned share, char const* what, Round const& round) {
    VFMGR_TRY(auto taken, sample(load, round));
    for (auto& each : taken) each /= share;
    auto made = measured();
    made.result.figures = summarise(std::move(taken));
    made.result.figures["message_bytes"] = load.size.message_bytes;
    made.result.detail = what;
    return made;
}

// The answer arrives in memory; its number shows that it belongs to this round.
class WrittenRounds {
  public:
    WrittenRounds(GuestStream& stream, Deadline deadline) : stream_(stream), deadline_(deadline) {}

    Result<void> round() {
        auto const message = stream_.message(0);
        auto const bytes = message.local.bytes;
        ++number_;
        bytes.back() = std::byte{number_};
        VFMGR_CHECK(stream_.pairs().front().transfer(0, TransferDirection::write, message));
        Spin spin;
        do {
            VFMGR_TRY(auto const found, stream_.queue().poll(room_));
            VFMGR_CHECK(check_completions(found, "an RDMA write"));
            completed_ += found.size();
            if (read_byte(stream_.back().bytes[bytes.size() - 1]) == number_) return drain();
        } while (spin.again(deadline_));
        return fail(Problem::timed_out, "the host did not answer an RDMA write in time",
                    "if the VM has one CPU, give it another; check for losses: ethtool -S");
    }

  private:
    // The write that was answered has arrived, so its completion is here or near: blocking for it
    // would cost more than the round.
    Result<void> drain() {
        if (++answered_ == completed_) return {};
        VFMGR_TRY(auto const found,
                  await(stream_.queue(), room_, deadline_, "an RDMA write", polls_for_latency));
        completed_ += found.size();
        return {};
    }

    GuestStream& stream_;
    Deadline deadline_;
    std::uint8_t number_ = 0;
    std::uint64_t answered_ = 0;
    std::uint64_t completed_ = 0;
    std::array<ibv_wc, 16> room_{};
};

}  // namespace

Result<Measured> write_latency(GuestStream& stream, Load const& load, Deadline deadline) {
    WrittenRounds rounds(stream, deadline);
    return latency(load, 2, "half a round trip of RDMA writes", [&] { return rounds.round(); });
}

Result<Measured> read_latency(GuestStream& stream, Load const& load, Deadline deadline) {
    auto const round = [&]() -> Result<void> {
        VFMGR_CHECK(stream.pairs().front().transfer(0, TransferDirection::read, stream.message(0)));
        return await_all(stream.queue(), 1, deadline, "an RDMA read", polls_for_latency);
    };
    return latency(load, 1, "an RDMA read from post to completion", round);
}

Result<Measured> send_latency(GuestStream& stream, Load const& load, Deadline deadline) {
    auto& pair = stream.pairs().front();
    auto const round = [&]() -> Result<void> {
        VFMGR_CHECK(pair.receive(0, stream.back()));
        VFMGR_CHECK(pair.send(0, stream.message(0).local));
        return await_all(stream.queue(), 2, deadline, "a send", polls_for_latency);
    };
    return latency(load, 2, "half a round trip of sends", round);
}

std::map<std::string, double> summarise(std::vector<std::uint64_t> nanoseconds) {
    if (nanoseconds.empty()) return {};
    std::ranges::sort(nanoseconds);
    auto const count = nanoseconds.size();
    // Nearest rank: the smallest sample that at least this share of all does not exceed.
    auto const at = [&](double share) {
        auto const rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(count)));
        return static_cast<double>(nanoseconds[std::clamp<std::size_t>(rank, 1, count) - 1]) / 1000;
    };
    return {{"min_us", at(0)},
            {"p50_us", at(0.5)},
            {"p90_us", at(0.9)},
            {"p99_us", at(0.99)},
            {"p999_us", at(0.999)},
            {"max_us", at(1)},
            {"samples", static_cast<double>(count)}};
}

}  // namespace vfmgr::verify
