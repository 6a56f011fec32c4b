// SPDX-License-Identifier: Apache-2.0
// How a rollout goes on after each answer.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "service/fleet/rollout/rollout.hpp"

namespace vfmgr::fleet {
namespace {

using State = RolloutHostState;

constexpr std::size_t hit_max = 16;  // sentences of one host

bool in_turn(Rollout const& rollout, RolloutHost const& host) {
    return host.wave == rollout.wave &&
           (host.state == State::pending || host.state == State::changing);
}

std::size_t failures(Rollout const& rollout) {
    return static_cast<std::size_t>(
        std::ranges::count(rollout.hosts, State::failed, &RolloutHost::state));
}

RolloutHost* host_in(Rollout& rollout, std::string const& name) {
    auto const found = std::ranges::find(rollout.hosts, name, &RolloutHost::host);
    return found == rollout.hosts.end() ? nullptr : &*found;
}

bool all_are_past(Rollout const& rollout, State state) {
    return std::ranges::find(rollout.hosts, state, &RolloutHost::state) == rollout.hosts.end();
}

std::string failed_hosts(Rollout const& rollout) {
    std::vector<std::string> texts;
    for (auto const& host : rollout.hosts)
        if (host.state == State::failed)
            texts.push_back(fmt::format("{}: {}", host.host, host.detail));
    return fmt::format("{}", fmt::join(texts, "; "));
}

// Begins the next wave when all of this one are through; halts where too many failed.
void settle(Rollout& rollout) {
    if (rollout.state == RolloutState::planning && all_are_past(rollout, State::planning))
        rollout.state = RolloutState::planned;
    if (rollout.state == RolloutState::reverting && all_are_past(rollout, State::reverting)) {
        rollout.state = failures(rollout) == 0 ? RolloutState::reverted : RolloutState::halted;
        if (failures(rollout) > 0)
            rollout.detail = "not all hosts are as before: " + failed_hosts(rollout);
    }
    if (rollout.state != RolloutState::running) return;
    if (failures(rollout) > rollout.spec.failures_max) {
        rollout.state = RolloutState::halted;
        rollout.detail = fmt::format("{} hosts failed, {} may: {}", failures(rollout),
                                     rollout.spec.failures_max, failed_hosts(rollout));
        return;
    }
    auto const turn_of_any = [&] {
        return std::ranges::any_of(rollout.hosts,
                                   [&](auto const& host) { return in_turn(rollout, host); });
    };
    while (rollout.wave < rollout.waves && !turn_of_any()) ++rollout.wave;
    if (rollout.wave == rollout.waves) rollout.state = RolloutState::done;
}

HostCall as_dry_run(HostCall call) {
    call.path += "?dry_run=true";
    return call;
}

std::string reason_in(RolloutAnswer const& answer) {
    return answer.error ? answer.error->detail : std::string("it was refused");
}

// Something else has deleted it.
bool is_gone_already(HostCall const& call, RolloutAnswer const& answer) {
    return call.method == "DELETE" && answer.error && answer.error->problem == Problem::not_found;
}

void after_dry_run(Rollout const& rollout, RolloutHost& host, HostCall const& call,
                   RolloutAnswer const& answer) {
    if (answer.outcome == Outcome::refusal && !is_gone_already(call, answer)) {
        host.state = State::failed;
        host.detail = reason_in(answer);
        return;
    }
    for (auto const& sentence : answer.hit)
        if (host.hit.size() < hit_max) host.hit.push_back(sentence);
    do ++host.planned;
    while (host.planned < host.changes.size() && !can_be_tried(rollout, host, host.planned));
    if (host.planned == host.changes.size()) host.state = State::pending;
}

void after_change(RolloutHost& host, HostCall const& call, RolloutAnswer const& answer) {
    host.state = State::changing;
    if (answer.outcome == Outcome::refusal && !is_gone_already(call, answer)) {
        host.state = State::failed;
        host.detail = reason_in(answer);
        return;
    }
    if (++host.applied == host.changes.size()) host.state = State::done;
}

void after_undo(RolloutHost& host, HostCall const& call, RolloutAnswer const& answer) {
    if (answer.outcome == Outcome::refusal && !is_gone_already(call, answer)) {
        host.state = State::failed;
        host.detail = "was not reverted: " + reason_in(answer);
        return;
    }
    if (--host.applied == 0) host.state = State::reverted;
}

// The call whose answer is awaited. A halted rollout begins none, but takes late answers.
std::optional<HostCall> call_of(Rollout const& rollout, RolloutHost const& host) {
    if (host.state == State::planning && rollout.state == RolloutState::planning)
        return as_dry_run(calls_of(rollout, host).at(host.planned));
    bool const forth = rollout.state == RolloutState::running ||
                       (rollout.state == RolloutState::halted && !rollout.back);
    if (forth && in_turn(rollout, host)) return calls_of(rollout, host).at(host.applied);
    if (rollout.state == RolloutState::reverting && host.state == State::reverting)
        return undo_calls_of(rollout, host).at(0);
    return std::nullopt;
}

tl::unexpected<Error> rollout_conflict(Rollout const& rollout, std::string const& why) {
    return fail(Problem::conflict,
                fmt::format("rollout {} is {}{}", rollout.id, enum_name(rollout.state), why),
                "vfctl fleet rollouts shows where it stands");
}

}  // namespace

std::vector<HostCall> asks_of(Rollout const& rollout) {
    std::vector<HostCall> asks;
    if (rollout.state == RolloutState::halted) return asks;
    for (auto const& host : rollout.hosts)
        if (auto ask = call_of(rollout, host)) asks.push_back(std::move(*ask));
    return asks;
}

Rollout after(Rollout rollout, RolloutAnswer const& answer, std::string const& act) {
    auto* const host = host_in(rollout, answer.host);
    if (!host || answer.outcome == Outcome::unknown) return rollout;
    auto const call = call_of(rollout, *host);
    if (!call) return rollout;
    if (rollout.state == RolloutState::planning)
        after_dry_run(rollout, *host, *call, answer);
    else if (rollout.state == RolloutState::reverting)
        after_undo(*host, *call, answer);
    else
        after_change(*host, *call, answer);
    rollout.act = act;
    settle(rollout);
    return rollout;
}

Result<Rollout> run_planned(Rollout rollout, std::string const& act) {
    if (rollout.state != RolloutState::planned) return rollout_conflict(rollout, ", not planned");
    if (failures(rollout) > rollout.spec.failures_max)
        return rollout_conflict(
            rollout, fmt::format(", and {} hosts refuse it, {} may: {}", failures(rollout),
                                 rollout.spec.failures_max, failed_hosts(rollout)));
    rollout.state = RolloutState::running;
    rollout.act = act;
    settle(rollout);
    return rollout;
}

Result<Rollout> halted(Rollout rollout, std::string const& because, std::string const& act) {
    if (rollout.state != RolloutState::running) return rollout_conflict(rollout, "");
    rollout.state = RolloutState::halted;
    rollout.detail = because;
    rollout.act = act;
    return rollout;
}

Result<Rollout> resumed(Rollout rollout, std::string const& act) {
    if (rollout.state != RolloutState::halted) return rollout_conflict(rollout, ", not halted");
    for (auto& host : rollout.hosts) {
        if (host.state != State::failed) continue;
        host.state = rollout.back ? State::reverting : State::changing;
        host.detail.clear();
    }
    rollout.state = rollout.back ? RolloutState::reverting : RolloutState::running;
    rollout.wave = 0;
    rollout.detail.clear();
    rollout.act = act;
    settle(rollout);
    return rollout;
}

Result<Rollout> skipped(Rollout rollout, std::string const& name, std::string const& act) {
    auto* const host = host_in(rollout, name);
    if (!host)
        return fail(Problem::not_found, fmt::format("rollout {} has no host {}", rollout.id, name),
                    "vfctl fleet rollouts shows its hosts");
    bool const waits = host->state == State::planning || host->state == State::pending ||
                       host->state == State::changing || host->state == State::failed ||
                       host->state == State::reverting;
    if (!waits) return rollout_conflict(rollout, fmt::format(", and {}'s turn has ended", name));
    host->state = State::skipped;
    host->detail =
        fmt::format("skipped; {} of {} changes are done", host->applied, host->changes.size());
    rollout.act = act;
    settle(rollout);
    return rollout;
}

Result<Rollout> reverted(Rollout rollout, std::string const& act) {
    if (rollout.state != RolloutState::halted && rollout.state != RolloutState::done)
        return rollout_conflict(rollout, "; halt it first");
    for (auto& host : rollout.hosts) {
        // Its last call may have been done, and undoing what was not done changes nothing.
        if (in_turn(rollout, host)) ++host.applied;
        if (host.applied > 0 && host.state != State::skipped)
            host.state = State::reverting;
        else if (host.state == State::failed)
            host.state = State::reverted;
    }
    rollout.back = true;
    rollout.state = RolloutState::reverting;
    rollout.detail.clear();
    rollout.act = act;
    settle(rollout);
    return rollout;
}

std::vector<std::string> sentences_of(Rollout const& rollout) {
    std::vector<std::string> plan;
    std::map<std::uint32_t, std::size_t> sizes;
    std::map<State, std::size_t> states;
    for (auto const& host : rollout.hosts) {
        ++states[host.state];
        if (!host.changes.empty()) ++sizes[host.wave];
    }
    std::vector<std::size_t> counts;
    for (auto const& [wave, count] : sizes) counts.push_back(count);
    if (counts.empty()) return {fmt::format("all {} hosts are as desired", rollout.hosts.size())};
    plan.push_back(
        fmt::format("{} wave{} of {} host{}; it halts if more than {} fail", counts.size(),
                    counts.size() == 1 ? "" : "s", fmt::join(counts, ", "),
                    counts == std::vector<std::size_t>{1} ? "" : "s", rollout.spec.failures_max));
    for (auto const& [state, count] : states)
        plan.push_back(
            fmt::format("{} of {} hosts: {}", count, rollout.hosts.size(), enum_name(state)));
    for (auto const& host : rollout.hosts) {
        for (auto const& sentence : host.hit)
            plan.push_back(fmt::format("{}: {}", host.host, sentence));
        if (!host.detail.empty()) plan.push_back(fmt::format("{}: {}", host.host, host.detail));
    }
    if (!rollout.detail.empty()) plan.push_back(rollout.detail);
    return plan;
}

}  // namespace vfmgr::fleet
