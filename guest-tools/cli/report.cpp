// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/cli/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/os/file.hpp"
#include "api/types/text.hpp"
#include "guest-tools/net/vf_report.hpp"
#include "vfmgr/checks/doctor.hpp"
#include "vfmgr/machine/bundle.hpp"
#include "vfmgr/machine/collect.hpp"
#include "vfmgr/machine/rdma_names.hpp"

namespace vfmgr::guest::command {
namespace {

Result<checks::Symptom> named_symptom(std::string const& id) {
    std::string ids;
    for (auto const& symptom : checks::all_symptoms()) {
        if (symptom.applies == checks::AppliesTo::host) continue;
        if (symptom.id == id) return symptom;
        ids += fmt::format("\n  {:<18} {}", symptom.id, symptom.title);
    }
    return fail(Problem::invalid_request, fmt::format("there is no symptom '{}'", id),
                "choose one of:" + ids);
}

}  // namespace

Result<checks::Facts> facts_of(std::string const& bundle) {
    if (bundle.empty()) return checks::collect({CheckedMachine::guest});
    if (auto const text = read_file(bundle)) return checks::from_bundle(*text);
    return fail(Problem::not_found, fmt::format("{} can't be read", bundle),
                "name a file that vf-guest report --bundle wrote");
}

int run_doctor(Options const& options) {
    auto const facts = facts_of(options.doctor.from);
    if (!facts) return print_error(facts.error());
    if (facts->machine == CheckedMachine::host)
        return print_error({Problem::invalid_request, "this bundle is of a host",
                            "judge it with vfctl doctor --from"});
    auto report = checks::diagnose(*facts, checks::common_rules());
    auto all = options.doctor.all;
    if (!options.doctor.symptom.empty()) {
        auto const symptom = named_symptom(options.doctor.symptom);
        if (!symptom) return print_error(symptom.error());
        report = checks::narrow(report, *symptom);
        all = true;
    }
    print_answer(options, report, checks::describe(report, {.all = all}));
    return worst(report) == CheckResult::failed ? 1 : 0;
}

int list_rdma(Options const& options) {
    auto const facts = facts_of(options.doctor.from);
    if (!facts) return print_error(facts.error());
    auto const names = checks::rdma_names(checks::read_machine(*facts));
    auto const kind = options.doctor.gids ? checks::RdmaTable::gids : checks::RdmaTable::names;
    print_answer(options, names, checks::rdma_table(names, kind));
    return 0;
}

int write_bundle(Options const& options) {
    auto const bundle =
        checks::to_bundle(checks::without_secrets(checks::collect({CheckedMachine::guest})));
    if (options.bundle_file == "-") return print_document(bundle), 0;
    std::ofstream out(options.bundle_file, std::ios::binary);
    out << bundle;
    out.close();
    if (out) return 0;
    return print_error({Problem::invalid_request,
                        fmt::format("{} can't be written", options.bundle_file),
                        "choose another file, or - for standard output"});
}

int run_report(Options const& options) {
    auto const records = records_of(options);
    auto const kept = records.reports.load(options.attachment);
    auto const written = write_metrics(records);
    int worst = written ? 0 : print_error(written.error());
    for (auto const& each : kept.reports) {
        worst = std::max(worst, exit_code(each));
        if (options.output == Output::text) print_text(describe(each, options.figures));
    }
    if (options.output == Output::json) print_json(nlohmann::json(kept.reports));
    for (auto const& each : kept.damaged) worst = std::max(worst, print_error(each));
    if (!kept.reports.empty() || !kept.damaged.empty()) return worst;
    return print_error(
        {Problem::not_found,
         options.attachment.empty()
             ? "no VF of this VM has been verified yet"
             : fmt::format("attachment {} has not been verified yet", options.attachment),
         "verify now: vf-guest verify"});
}

int print_error(Error const& error) {
    auto text = fmt::format("vf-guest: {}\n", error.detail);
    for (auto const& cause : error.causes)
        text += fmt::format("  {}: {} ({})\n", cause.call, cause.code, cause.text);
    if (!error.remedy.empty()) text += fmt::format("  remedy: {}\n", error.remedy);
    warn_text(text);
    return exit_code(error.problem);
}

void print_text(std::string_view text) {
    std::fputs(escaped(text, Shown::text).c_str(), stdout);
}

void warn_text(std::string_view text) {
    std::fputs(escaped(text, Shown::text).c_str(), stderr);
}

void print_line(std::string const& line) {
    print_text(fmt::format("vf-guest: {}\n", line));
    std::fflush(stdout);
}

void warn(std::string const& line) {
    warn_text(fmt::format("vf-guest: {}\n", line));
}

void print_document(std::string_view json) {
    auto const shown = escaped(json, Shown::json);
    std::fputs((shown + (shown.ends_with('\n') ? "" : "\n")).c_str(), stdout);
}

void print_json(nlohmann::json const& document) {
    print_document(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_answer(Options const& options, nlohmann::json const& document, std::string const& text) {
    if (options.output == Output::json) return print_json(document);
    print_text(text);
}

int ended_with(int status) {
    auto const written = flush_output();
    if (written) return status;
    auto const failed = print_error(written.error());
    return status == 0 ? failed : status;
}

}  // namespace vfmgr::guest::command
