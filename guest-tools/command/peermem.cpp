// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/command/peermem.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "api/types/text.hpp"
#include "guest-tools/command/doctor.hpp"
#include "guest-tools/command/print.hpp"
#include "guest-tools/gpu/at_boot.hpp"
#include "guest-tools/gpu/load_peermem.hpp"
#include "vfmgr/checks/doctor.hpp"

namespace vfmgr::guest::command {
namespace {

using gpu::AtBoot;
using gpu::PeermemEnd;
using gpu::PeermemNext;
using gpu::PeermemOutcome;
using gpu::PeermemPlan;

// The command's answer; a part of it may be missing.
struct Answer {
    std::optional<PeermemPlan> plan;
    std::optional<PeermemEnd> end;
    std::optional<Finding> refusal;
    std::optional<AtBoot> at_boot;
    bool waited = false;
};

std::string sentence_of(Answer const& answer) {
    auto const& plan = *answer.plan;
    if (!answer.end) return plan.reason;
    switch (*answer.end) {
        case PeermemEnd::loaded:
            return plan.module + " is loaded now";
        case PeermemEnd::refused:
            return plan.module + " did not load";
        case PeermemEnd::not_in_time:
            return plan.reason + (answer.waited
                                      ? ", which did not come in time"
                                      : "; --wait 10m waits for it and then loads the module");
        default:
            return plan.reason;
    }
}

void print_answer(Answer const& answer) {
    if (answer.plan) {
        print_text(fmt::format("{}\n", sentence_of(answer)));
        if (!answer.end || *answer.end == PeermemEnd::not_in_time)
            for (auto const& one : answer.plan->awaited)
                print_text(fmt::format("waiting for {}: {}\n", one.what, one.observed));
        CheckReport bad;
        bad.findings = answer.plan->hindrances;
        if (answer.refusal) bad.findings.push_back(*answer.refusal);
        if (!bad.findings.empty()) print_text(checks::describe(bad, {.all = true}));
        for (auto const& remark : answer.plan->remarks)
            print_text(fmt::format("note: {}\n", remark));
    }
    if (answer.at_boot) print_text(fmt::format("at boot: {}\n", answer.at_boot->detail));
}

void print_answer(Options const& options, Answer const& answer) {
    if (options.output == Output::text) return print_answer(answer);
    nlohmann::json out = nlohmann::json::object();
    if (answer.plan) {
        auto const& plan = *answer.plan;
        out = {{"module", plan.module.empty() ? nlohmann::json() : nlohmann::json(plan.module)},
               {"next", enum_name(plan.next)},
               {"end", answer.end ? nlohmann::json(enum_name(*answer.end)) : nlohmann::json()},
               {"detail", sentence_of(answer)},
               {"awaited", nlohmann::json::array()},
               {"hindrances", plan.hindrances},
               {"refusal", answer.refusal ? nlohmann::json(*answer.refusal) : nlohmann::json()},
               {"remarks", plan.remarks}};
        for (auto const& one : plan.awaited)
            out["awaited"].push_back({{"what", one.what}, {"seen", one.observed}});
    }
    out["at_boot"] = nullptr;
    if (answer.at_boot)
        out["at_boot"] = {{"by", enum_name(answer.at_boot->by)},
                          {"detail", answer.at_boot->detail}};
    print_json(out);
}

int explain(Options const& options) {
    auto const facts = facts_of(options.peermem.from);
    if (!facts) return print_error(facts.error());
    auto const machine = checks::read_machine(*facts);
    Answer answer;
    answer.plan = gpu::peermem_plan(machine, {options.peermem.despite_dma_buf});
    auto const next = answer.plan->next;
    bool const possible = next != PeermemNext::impossible;
    bool const selection = answer.plan->loaded || (possible && next != PeermemNext::nothing);
    if (options.peermem.at_boot && selection)
        answer.at_boot = gpu::choose_at_boot(machine, answer.plan->module);
    print_answer(options, answer);
    return possible ? 0 : 1;
}

int leave_at_boot(Options const& options) {
    auto const left = gpu::leave_at_boot({});
    if (!left) return print_error(left.error());
    Answer answer;
    answer.at_boot = *left;
    print_answer(options, answer);
    return 0;
}

int status_of(PeermemEnd end) {
    switch (end) {
        case PeermemEnd::not_needed:
        case PeermemEnd::was_loaded:
        case PeermemEnd::loaded:
            return 0;
        case PeermemEnd::not_in_time:
            return exit_code(Problem::timed_out);
        case PeermemEnd::impossible:
        case PeermemEnd::refused:
            break;
    }
    return 1;
}

}  // namespace

std::optional<std::chrono::seconds> parse_wait(std::string_view text) {
    constexpr std::uint64_t minute = 60, hour = 3600, day = 86'400;
    if (text.size() < 2) return std::nullopt;
    auto const count = parse_digits(text.substr(0, text.size() - 1), {.max = day});
    auto const unit = text.back() == 's'   ? 1
                      : text.back() == 'm' ? minute
                      : text.back() == 'h' ? hour
                                           : 0;
    if (!count || *count == 0 || unit == 0 || *count * unit > day) return std::nullopt;
    return std::chrono::seconds(*count * unit);
}

int run_peermem(Options const& options) {
    auto const& selection = options.peermem;
    if (selection.explain) return explain(options);
    if (::geteuid() != 0)
        return print_error(
            {Problem::forbidden, "vf-guest peermem must run as root: it loads a kernel module",
             "run it with sudo; any user may run --explain, which prints what it would do"});
    if (selection.not_at_boot) return leave_at_boot(options);
    std::optional<Deadline> until;
    if (selection.wait) until = std::chrono::steady_clock::now() + *selection.wait;
    auto const quiet = [](std::string const&) {};
    auto const outcome = options.output == Output::text
                             ? gpu::load_peermem({}, {selection.despite_dma_buf}, until, print_line)
                             : gpu::load_peermem({}, {selection.despite_dma_buf}, until, quiet);
    if (!outcome) return print_error(outcome.error());
    Answer answer{outcome->plan, outcome->end, outcome->refusal, {}, selection.wait.has_value()};
    bool const there = outcome->end == PeermemEnd::loaded || outcome->end == PeermemEnd::was_loaded;
    if (selection.at_boot && there) {
        auto kept = gpu::keep_at_boot({}, outcome->plan.module);
        if (!kept) {
            print_answer(options, answer);
            return print_error(kept.error());
        }
        answer.at_boot = *kept;
    } else if (selection.at_boot) {
        answer.at_boot =
            AtBoot{gpu::BootBy::nobody, status_of(outcome->end) == 0
                                            ? "nothing is set up, because nothing is needed"
                                            : "nothing is set up until the module loads"};
    }
    print_answer(options, answer);
    return status_of(outcome->end);
}

}  // namespace vfmgr::guest::command
