// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/command/gpu.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "guest-tools/command/print.hpp"
#include "guest-tools/gpu/find_gpus.hpp"
#include "guest-tools/gpu/gpu_test.hpp"
#include "guest-tools/gpu/gpu_text.hpp"
#include "guest-tools/gpu/load_peermem.hpp"

namespace vfmgr::guest::command {
namespace {

Result<gpu::FoundGpus> find() {
    auto const facts = gpu::collect_facts({});
    return gpu::find_gpus(checks::read_machine(facts));
}

Result<GpuTestReport> run_test(Options const& options) {
    VFMGR_TRY(auto const found, find());
    std::optional<PciAddress> selection;
    if (!options.gpu.pci.empty()) {
        VFMGR_TRY(selection, PciAddress::parse(options.gpu.pci));
    }
    VFMGR_TRY(auto const at, gpu::choose_gpu(found.infos, selection));
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
    if (options.output == Output::json)
        print_json(nlohmann::json(found->infos));
    else
        print_text(gpu::describe(found->infos));
    return 0;
}

int test_gpu(Options const& options) {
    auto const report = run_test(options);
    if (!report) return print_error(report.error());
    if (options.output == Output::json)
        print_json(nlohmann::json(*report));
    else
        print_text(gpu::describe(*report));
    bool const well =
        report->verdict == Verdict::pass || report->verdict == Verdict::not_applicable;
    return well ? 0 : 1;
}

}  // namespace vfmgr::guest::command
