// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/turns.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cmath>

namespace vfmgr::verify {
namespace {

double seconds_between(Deadline from, Deadline to) {
    return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

}  // namespace

Turns::Turns(TurnLimits limits)
    : limits_(std::move(limits)), usual_(static_cast<double>(limits_.usual.count())) {}

Result<std::optional<Turn>> Turns::take(std::string const& vm, std::string const& key,
                                        Deadline now) {
    if (held_.contains(key)) return std::nullopt;
    std::erase_if(waiting_,
                  [&](Waiting const& one) { return one.asked_at + limits_.patience < now; });
    if (auto const turn = wait_for_allowance(vm, now)) return turn;
    VFMGR_CHECK(enter(vm, key, now));
    auto const turn = place_of(key);
    if (turn.own || held_.size() + turn.position > limits_.places) return turn;
    auto const mine = std::ranges::find(waiting_, key, &Waiting::key);
    served_ = std::max(served_, mine->start);
    waiting_.erase(mine);
    held_[key] = {vm, now};
    return std::nullopt;
}

// Adds `key` to the queue, or notes that it still waits.
Result<void> Turns::enter(std::string const& vm, std::string const& key, Deadline now) {
    auto const known = std::ranges::find(waiting_, key, &Waiting::key);
    if (known != waiting_.end()) {
        known->asked_at = now;
        return {};
    }
    auto const mine = waiting_of(vm);
    if (waiting_.size() >= limits_.waiting_max || mine >= limits_.waiting_each_max)
        return fail(Problem::limit_exceeded,
                    fmt::format("{} already wait for {}, and no more may",
                                mine >= limits_.waiting_each_max
                                    ? fmt::format("{} requests of this VM", mine)
                                    : fmt::format("{} requests", waiting_.size()),
                                limits_.what),
                    "try again when some of them have ended");
    auto const used = used_.find(vm);
    auto const ahead = static_cast<double>(mine + held_by(vm)) * usual_;
    auto const start = std::max(served_, used == used_.end() ? 0.0 : used->second) + ahead;
    auto const behind = std::ranges::upper_bound(waiting_, start, {}, &Waiting::start);
    waiting_.insert(behind, {vm, key, start, now});
    return {};
}

// Passes over a VM that holds all places it may, until one of them ends.
Turn Turns::place_of(std::string const& key) const {
    Turn turn{0, 1, false};
    std::map<std::string, std::size_t> taken;
    for (auto const& [held, by] : held_) ++taken[by.vm];
    for (auto const& one : waiting_) {
        bool const own = ++taken[one.vm] > limits_.places_each;
        if (!own) ++turn.position;
        if (one.key != key) continue;
        turn.own = own;
        break;
    }
    if (turn.own) ++turn.position;
    auto const free = limits_.places - std::min(limits_.places, held_.size());
    turn.seconds = estimate(turn.position - std::min<std::size_t>(turn.position, free));
    return turn;
}

// Estimates the seconds until `before` others have ended.
std::uint32_t Turns::estimate(std::size_t before) const {
    auto const rounds = static_cast<double>(before) / static_cast<double>(limits_.places);
    return static_cast<std::uint32_t>(std::max(1.0, std::ceil(rounds * usual_)));
}

std::size_t Turns::held_by(std::string const& vm) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(held_, [&](auto const& entry) { return entry.second.vm == vm; }));
}

std::size_t Turns::waiting_of(std::string const& vm) const {
    return static_cast<std::size_t>(std::ranges::count(waiting_, vm, &Waiting::vm));
}

void Turns::end(std::string const& key, Deadline now) {
    std::erase_if(waiting_, [&](Waiting const& one) { return one.key == key; });
    auto const ended = held_.extract(key);
    if (!ended) return forget_idle(now);
    constexpr double weight_of_the_last = 0.2;
    auto const& [vm, since] = ended.mapped();
    auto const seconds = seconds_between(since, now);
    usual_ += weight_of_the_last * (seconds - usual_);
    auto& used = used_[vm];
    used = std::max(used, served_) + seconds;
    spend(vm, seconds, now);
    forget_idle(now);
}

// Forgets past use once no place is held and none is waited for.
void Turns::forget_idle(Deadline now) {
    if (held_.empty() && waiting_.empty()) {
        used_.clear();
        served_ = 0;
    }
    if (!limits_.allowance) return;
    auto const& [most, regained] = *limits_.allowance;
    std::erase_if(saved_, [&](auto const& entry) {
        auto const& saved = entry.second;
        return saved.seconds + seconds_between(saved.at, now) * regained >=
               static_cast<double>(most.count());
    });
}

void Turns::spend(std::string const& vm, double seconds, Deadline now) {
    if (!limits_.allowance) return;
    auto const most = static_cast<double>(limits_.allowance->saved_max.count());
    auto& saved = saved_.try_emplace(vm, Saved{most, now}).first->second;
    auto const regained = seconds_between(saved.at, now) * limits_.allowance->regained;
    saved = {std::min(most, saved.seconds + regained) - seconds, now};
}

std::optional<Turn> Turns::wait_for_allowance(std::string const& vm, Deadline now) {
    if (!limits_.allowance) return std::nullopt;
    spend(vm, 0, now);
    auto const missing = -saved_[vm].seconds;
    if (missing < 0) return std::nullopt;
    auto const seconds = std::ceil(missing / limits_.allowance->regained);
    return Turn{1, static_cast<std::uint32_t>(std::max(1.0, seconds)), true};
}

namespace {

using std::chrono::milliseconds;
// Less than the time a host keeps a place in its queue (TurnLimits::patience), minus the request's
// own.
constexpr milliseconds try_again_min{500}, try_again_max{5000};

}  // namespace

Waiting wait_until(Deadline until) {
    Waiting waiting{until};
    waiting.pause = [](milliseconds time) { ::poll(nullptr, 0, static_cast<int>(time.count())); };
    return waiting;
}

std::optional<milliseconds> next_try(Turn const& turn, Waiting const& waiting) {
    if (turn.own && !waiting.for_own) return std::nullopt;
    auto const half = milliseconds(std::chrono::seconds(turn.seconds)) / 2;
    auto const time = std::clamp(half, try_again_min, try_again_max);
    if (waiting.now() + time > waiting.until) return std::nullopt;
    return time;
}

Error gave_up(Turn const& turn) {
    if (turn.own)
        return {Problem::unavailable,
                "this VM already has as many sessions or streams on the host as one VM may",
                "verify fewer VFs at the same time, or one after the other"};
    return {
        Problem::unavailable,
        fmt::format(
            "gave up waiting for a place on the host: position {} in its queue, about {} s left",
            turn.position, turn.seconds),
        "verify again when fewer VMs are being verified"};
}

}  // namespace vfmgr::verify
