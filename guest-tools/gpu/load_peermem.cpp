// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/load_peermem.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "guest-tools/gpu/load_refusals.hpp"
#include "guest-tools/gpu/module_watch.hpp"
#include "vfmgr/checks/collect.hpp"
#include "vfmgr/checks/command.hpp"

namespace vfmgr::guest::gpu {
namespace {

using std::chrono::steady_clock;

// The kernel itself waits half a minute for the symbols of a module that is just being loaded.
constexpr std::chrono::seconds modprobe_time_max{60};

std::string text_of(std::vector<Awaited> const& awaited) {
    std::string text;
    for (auto const& one : awaited)
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", one.what, one.observed);
    return text;
}

PeermemPlan plan_now(Places const& places, PeermemOptions options) {
    auto const facts = collect_facts(places);
    return peermem_plan(checks::read_machine(facts), options);
}

// Waits until the plan is no longer to wait, or until the deadline.
Result<PeermemPlan> await_plan(Places const& places, PeermemOptions options,
                               std::optional<Deadline> wait_until,
                               std::function<void(std::string const&)> const& report) {
    auto const release = checks::read_machine(collect_facts(places)).release;
    VFMGR_TRY(auto watch, ModuleWatch::open(places.root, release));
    auto plan = plan_now(places, options);
    std::vector<Awaited> reported;
    while (plan.next == PeermemNext::wait && wait_until) {
        auto const left =
            std::chrono::ceil<std::chrono::seconds>(*wait_until - steady_clock::now());
        if (plan.awaited != reported)
            report(fmt::format("waiting for {} (at most {} s)", text_of(plan.awaited),
                               std::max<long>(0, left.count())));
        reported = plan.awaited;
        VFMGR_TRY(auto const ready, watch.wait(*wait_until));
        if (ready == Readiness::deadline_passed) break;
        plan = plan_now(places, options);
    }
    return plan;
}

// Returns the log lines that are new since then. Their clock is the kernel's.
std::vector<std::string> logged_since(double seconds, checks::Machine const& machine) {
    std::vector<std::string> lines;
    if (!machine.log) return lines;
    for (auto const& line : machine.log->lines)
        if (line.seconds > seconds) lines.emplace_back(line.text);
    return lines;
}

double end_of_log(checks::Machine const& machine) {
    return machine.log && !machine.log->lines.empty() ? machine.log->lines.back().seconds : 0;
}

std::string kernel_name(std::string name) {
    std::ranges::replace(name, '-', '_');
    return name;
}

std::optional<Finding> load(Places const& places, std::string const& module) {
    auto const before = collect_facts(places);
    auto const since = end_of_log(checks::read_machine(before));
    auto const ended =
        checks::run_command({places.modprobe, module}, steady_clock::now() + modprobe_time_max);
    auto const after = collect_facts(places);
    auto const machine = checks::read_machine(after);
    bool const is_there = checks::module_loaded(machine, kernel_name(module));
    if (ended.error == 0 && ended.exit_status == 0 && is_there) return std::nullopt;
    auto words = ended.err + ended.out;
    if (ended.error == ETIMEDOUT)
        words = fmt::format("did not end within {} s and was killed", modprobe_time_max.count());
    else if (ended.error != 0)
        words = fmt::format("{} can't be run: {}", places.modprobe, errno_name(ended.error));
    else if (ended.exit_status == 0)
        words += "it ended with status 0, but the module is not loaded";
    return explain_refusal(kernel_name(module), words, logged_since(since, machine));
}

}  // namespace

checks::Facts collect_facts(Places const& places) {
    return checks::collect({CheckedMachine::guest, places.root});
}

Result<PeermemOutcome> load_peermem(Places const& places, PeermemOptions options,
                                    std::optional<Deadline> wait_until,
                                    std::function<void(std::string const&)> const& report) {
    PeermemOutcome outcome;
    VFMGR_TRY(outcome.plan, await_plan(places, options, wait_until, report));
    switch (outcome.plan.next) {
        case PeermemNext::nothing:
            outcome.end = outcome.plan.loaded ? PeermemEnd::was_loaded : PeermemEnd::not_needed;
            return outcome;
        case PeermemNext::impossible:
            outcome.end = PeermemEnd::impossible;
            return outcome;
        case PeermemNext::wait:
            outcome.end = PeermemEnd::not_in_time;
            return outcome;
        case PeermemNext::load:
            break;
    }
    outcome.refusal = load(places, outcome.plan.module);
    outcome.end = outcome.refusal ? PeermemEnd::refused : PeermemEnd::loaded;
    return outcome;
}

}  // namespace vfmgr::guest::gpu
