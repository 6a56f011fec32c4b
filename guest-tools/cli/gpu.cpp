// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/cli/gpu.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "api/os/file.hpp"
#include "api/types/text.hpp"
#include "guest-tools/cli/report.hpp"
#include "guest-tools/cli/verify.hpp"
#include "guest-tools/gpu/at_boot.hpp"
#include "guest-tools/gpu/gpu_facts.hpp"
#include "guest-tools/gpu/gpu_test.hpp"
#include "guest-tools/gpu/gpu_text.hpp"
#include "guest-tools/gpu/load_peermem.hpp"
#include "guest-tools/gpu/near.hpp"
#include "guest-tools/gpu/topology.hpp"
#include "vfmgr/checks/doctor.hpp"

namespace vfmgr::guest::command {
namespace {

Result<gpu::FoundGpus> find() {
    auto const facts = gpu::collect_facts({});
    return gpu::find_gpus(checks::read_machine(facts));
}

Result<GpuTestReport> run_test(Options const& options) {
    VFMGR_TRY(auto const found, find());
    VFMGR_TRY(auto const at, gpu::choose_gpu(found.infos, options.gpu.pci));
    bool const live = options.output == Output::text && ::isatty(STDERR_FILENO) == 1;
    auto const on_test = [live](TestResult const& test) {
        if (live) warn_text(fmt::format("  {}: {}\n", test.name, enum_name(test.verdict)));
    };
    auto const begin = std::chrono::system_clock::now();
    auto report =
        gpu::test_gpu(*found.cuda, found.gpus[at], found.infos[at],
                      {.bytes = options.gpu.bytes, .rounds = options.gpu.rounds}, on_test);
    report.started_at = begin;
    report.finished_at = std::chrono::system_clock::now();
    return report;
}

}  // namespace

int list_gpus(Options const& options) {
    auto const found = find();
    if (!found) return print_error(found.error());
    print_answer(options, found->infos, gpu::describe(found->infos));
    return 0;
}

int test_gpu(Options const& options) {
    auto const report = run_test(options);
    if (!report) return print_error(report.error());
    print_answer(options, *report, gpu::describe(*report));
    bool const well =
        report->verdict == Verdict::pass || report->verdict == Verdict::not_applicable;
    return well ? 0 : 1;
}

namespace {

// Returns the CPU mask of each NUMA node, in order.
std::vector<std::string> cpus_of_nodes() {
    std::vector<std::string> masks;
    for (int node = 0;; ++node) {
        auto mask =
            read_file(fmt::format("/sys/devices/system/node/node{}/cpumap", node)).value_or("");
        if (mask.empty()) return masks;
        std::erase(mask, '\n');
        masks.push_back(std::move(mask));
    }
}

// Reads the settings in NCCL's order: the environment, then the user's file, then the machine's.
gpu::NcclState nccl_state(std::string const& current) {
    gpu::NcclState state;
    for (char** one = environ; *one; ++one) gpu::add_nccl_file(*one, state.settings);
    if (auto const* const home = std::getenv("HOME"))
        gpu::add_nccl_file(read_file(std::filesystem::path(home) / ".nccl.conf").value_or(""),
                           state.settings);
    gpu::add_nccl_file(read_file("/etc/nccl.conf").value_or(""), state.settings);
    auto const named = state.settings.find("NCCL_TOPO_FILE");
    std::string const file =
        named == state.settings.end() ? gpu::default_topology_file : named->second;
    auto const text = read_file(file).value_or("");
    if (text.empty()) return state;
    state.file = file;
    state.file_is_current = text == current;
    return state;
}

// Only a VM has a host to query. Without its answer, the rest is still shown.
std::optional<HostTopology> ask_host(Options const& options, checks::Machine const& machine) {
    if (machine.kind != CheckedMachine::guest) return std::nullopt;
    auto print_error = host_of(options).topology();
    if (print_error) return std::move(*print_error);
    warn(fmt::format("the host did not report where its GPUs and NICs are: {}",
                     detail_with_causes(print_error.error())));
    return std::nullopt;
}

int write_file(std::string const& file, std::string const& text) {
    constexpr mode_t mode = 0644;
    if (text.empty())
        return print_error({Problem::unavailable,
                            "there is nothing to write: the host did not report where a GPU and a "
                            "NIC of this VM are",
                            "run it as root in a VM with a GPU and a VF that vfmgrd attached"});
    if (auto const written = replace_file(file, text, mode); !written) {
        auto error = written.error();
        error.detail = fmt::format("{} can't be written", file);
        error.remedy = "choose a folder that exists, and run it as root";
        return print_error(error);
    }
    print_text(
        fmt::format("{} holds what the host reported; NCCL reads it with this line in "
                    "/etc/nccl.conf:\n"
                    "NCCL_TOPO_FILE={}\n",
                    file, file));
    return 0;
}

}  // namespace

int show_topology(Options const& options) {
    auto const facts = gpu::collect_facts({});
    auto const machine = checks::read_machine(facts);
    auto const host = ask_host(options, machine);
    auto const functions = host ? gpu::placed(machine, *host) : std::vector<gpu::PlacedFunction>();
    auto const text =
        functions.empty() ? std::string() : gpu::topology_file(functions, cpus_of_nodes());
    if (!options.gpu.topology_file.empty()) return write_file(options.gpu.topology_file, text);
    auto const found = gpu::find_gpus(machine);
    if (!found) return print_error(found.error());
    auto const notes = host ? host->notes : std::vector<std::string>();
    auto const pairs = gpu::judge(machine, found->infos, host, nccl_state(text));
    auto page = gpu::describe(pairs, notes);
    nlohmann::json document{{"pairs", pairs}, {"notes", notes}};
    if (options.gpu.measures) {
        auto const tests = gpu::measure(*found, machine, pairs);
        for (auto const& test : tests) page += gpu::describe(test);
        document["measured"] = tests;
    }
    print_answer(options, document, page);
    return 0;
}

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

void print_as_text(Answer const& answer) {
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
    if (options.output == Output::text) return print_as_text(answer);
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
    if (end == PeermemEnd::not_in_time) return exit_code(Problem::timed_out);
    return end == PeermemEnd::impossible || end == PeermemEnd::refused ? 1 : 0;
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
