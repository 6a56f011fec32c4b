// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/command/doctor.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/os/file.hpp"
#include "guest-tools/command/print.hpp"
#include "vfmgr/checks/bundle.hpp"
#include "vfmgr/checks/collect.hpp"
#include "vfmgr/checks/doctor.hpp"
#include "vfmgr/checks/rdma_names.hpp"

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
    auto report = checks::diagnose(*facts);
    auto all = options.doctor.all;
    if (!options.doctor.symptom.empty()) {
        auto const symptom = named_symptom(options.doctor.symptom);
        if (!symptom) return print_error(symptom.error());
        report = checks::narrow(report, *symptom);
        all = true;
    }
    if (options.output == Output::json)
        print_json(report);
    else
        print_text(checks::describe(report, {.all = all}));
    return worst(report) == CheckResult::failed ? 1 : 0;
}

int list_rdma(Options const& options) {
    auto const facts = facts_of(options.doctor.from);
    if (!facts) return print_error(facts.error());
    auto const names = checks::rdma_names(checks::read_machine(*facts));
    auto const kind = options.doctor.gids ? checks::RdmaTable::gids : checks::RdmaTable::names;
    if (options.output == Output::json)
        print_json(names);
    else
        print_text(checks::rdma_table(names, kind));
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

}  // namespace vfmgr::guest::command
