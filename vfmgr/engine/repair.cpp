// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/engine/repair.hpp"

#include <algorithm>

namespace vfmgr {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds first_wait = 1s;
// The longest wait after a repair that fails the same way each time: a report every few seconds
// helps no reader.
constexpr std::chrono::seconds failed_wait_max = 10min;
constexpr auto calm = 1min;
// Where VMs come and go all the time, no observation finds a PF at rest.
constexpr auto patience = 5s;

std::chrono::seconds doubled(unsigned times, std::chrono::seconds longest) {
    return std::min(first_wait * (1 << std::min(times, 16U)), longest);
}

}  // namespace

bool RepairPace::going_on(std::string const& subject) const {
    auto const pace = paces_.find(subject);
    return pace != paces_.end() && pace->second.going_on;
}

bool RepairPace::failed(std::string const& subject) const {
    auto const pace = paces_.find(subject);
    return pace != paces_.end() && pace->second.failure;
}

bool RepairPace::may_begin(std::string const& subject, Deadline now) const {
    auto const pace = paces_.find(subject);
    return pace == paces_.end() || (!pace->second.going_on && now >= pace->second.not_before);
}

void RepairPace::begun(std::string const& subject) {
    paces_[subject].going_on = true;
}

bool RepairPace::ended(std::string const& subject, std::optional<std::string> failure, Deadline now,
                       std::chrono::seconds wait_max) {
    auto& pace = paces_[subject];
    pace.going_on = false;
    if (now > pace.not_before + calm) pace.in_a_row = 0;
    bool const news = failure && failure != pace.failure;
    pace.same_failures = failure && !news ? pace.same_failures + 1 : 0;
    pace.not_before = now + std::max(doubled(pace.in_a_row++, wait_max),
                                     doubled(pace.same_failures, failed_wait_max));
    pace.failure = std::move(failure);
    return news;
}

bool RepairPace::refused(std::string const& subject, std::string const& why, Deadline now) {
    auto& pace = paces_[subject];
    pace.refused_at = now;
    if (why == pace.failure || (pace.reported_at && now < *pace.reported_at + calm)) return false;
    pace.reported_at = now;
    pace.failure = why;
    return true;
}

void RepairPace::all_right(std::string const& subject) {
    auto const pace = paces_.find(subject);
    if (pace != paces_.end() && !pace->second.going_on && pace->second.failure) paces_.erase(pace);
}

bool RepairPace::kept_waiting(std::string const& subject, Deadline now) {
    return now >= busy_since_.emplace(subject, now).first->second + patience;
}

void RepairPace::observed_at_rest(std::string const& subject) {
    busy_since_.erase(subject);
}

void RepairPace::forget_old(Deadline now) {
    std::erase_if(paces_, [&](auto const& entry) {
        auto const& pace = entry.second;
        return !pace.going_on && now > std::max(pace.not_before, pace.refused_at) + calm;
    });
}

}  // namespace vfmgr
