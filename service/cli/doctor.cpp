// SPDX-License-Identifier: Apache-2.0
// Checks whether a host is ready: through the daemon, by vfctl itself, or from a bundle.
#include "vfmgr/checks/doctor.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "service/cli/add_command.hpp"
#include "service/cli/connection.hpp"
#include "service/cli/contexts.hpp"
#include "service/cli/host_facts.hpp"
#include "service/cli/server.hpp"
#include "service/cli/show.hpp"
#include "vfmgr/checks/host/rules.hpp"
#include "vfmgr/machine/bundle.hpp"

namespace vfmgr {
namespace {

struct DoctorArguments {
    std::string symptom;
    FactsSource source;
    bool all = false;
    bool rules = false;
    bool fleet = false;
};

Result<CheckReport> report_for(Options const& options, FactsSource const& source) {
    if (source.from.empty() && !source.local) {
        auto const answer = ask_host(options, "/v1/host/checks");
        if (answer) return value_of<CheckReport>(*answer);
        if (!may_collect_here(options, answer.error())) return fail(answer.error());
    }
    VFMGR_TRY(auto const facts, facts_of(source));
    return checks::diagnose(facts, checks::all_rules());
}

// By default a fleet is asked on the replica's own machine, as a host is on its own.
Result<CheckReport> report_of_fleet(Options options) {
    VFMGR_TRY(auto const server, server_of(options));
    if (server.address == local_address) options.host = fleet_context;
    VFMGR_TRY(auto const connection, Connection::open(options));
    return get<CheckReport>(connection, "/v1/fleet/checks");
}

Result<checks::Symptom> find_symptom(std::string const& id) {
    std::string ids;
    for (auto const& symptom : checks::all_symptoms()) {
        if (symptom.id == id) return symptom;
        ids += fmt::format("\n  {:<18} {}", symptom.id, symptom.title);
    }
    return fail(Problem::invalid_request, fmt::format("there is no symptom '{}'", printable(id)),
                "choose one of:" + ids);
}

Table table_of(CheckReport const& report) {
    Table table{{"RULE", "SUBJECT", "RESULT", "DETAIL"}, {}};
    for (auto const& finding : report.findings)
        table.rows.push_back({finding.rule, finding.subject, std::string(enum_name(finding.result)),
                              finding.detail});
    return table;
}

Result<void> print_rules(Options const& options) {
    Table table{{"RULE", "TITLE", "SOURCE"}, {}};
    std::string page;
    auto items = nlohmann::json::array();
    for (auto const& rule : checks::all_rules()) {
        table.rows.push_back({cell(rule.id), cell(rule.title), cell(rule.source)});
        page += fmt::format("{}: {} ({})\n", rule.id, rule.title, rule.source);
        items.push_back({{"rule", rule.id}, {"title", rule.title}, {"source", rule.source}});
    }
    return print(table, page, nlohmann::json{{"items", std::move(items)}}.dump(), options);
}

// Exit codes, for scripts. Where vfctl itself fails, as with wrong usage, nothing was checked, and
// standard output is empty.
constexpr int exit_ready = 0;
constexpr int exit_warnings = 1;
constexpr int exit_failures = 2;

Result<int> doctor(Options const& options, DoctorArguments const& arguments) {
    if (arguments.rules) return print_rules(options).map([] { return exit_ready; });
    std::optional<checks::Symptom> symptom;
    if (!arguments.symptom.empty()) {
        VFMGR_TRY(symptom, find_symptom(arguments.symptom));
    }
    VFMGR_TRY(auto report,
              arguments.fleet ? report_of_fleet(options) : report_for(options, arguments.source));
    if (symptom) report = checks::narrow(report, *symptom);
    nlohmann::json const body = report;
    VFMGR_CHECK(print(table_of(report), checks::describe(report, {.all = arguments.all || symptom}),
                      to_json_text(body), options));
    if (worst(report) == CheckResult::warning) return exit_warnings;
    if (worst(report) != CheckResult::failed) return exit_ready;
    print_sentence(fmt::format("this {} is not ready; follow the remedies of the checks above",
                               enum_name(report.machine)),
                   options);
    return exit_failures;
}

Result<std::string> bundle_of(Options const& options, FactsSource const& source) {
    if (!source.local) {
        auto const answer = ask_host(options, "/v1/host/bundle");
        if (answer) {
            VFMGR_TRY(auto const bundle, json_of(*answer));
            return bundle.dump(1) + "\n";
        }
        if (!may_collect_here(options, answer.error())) return fail(answer.error());
    }
    VFMGR_TRY(auto facts, facts_of(source));
    return checks::to_bundle(checks::without_secrets(std::move(facts)));
}

Result<void> support_bundle(Options const& options, std::string const& file, bool local) {
    VFMGR_TRY(auto const bundle, bundle_of(options, {{}, local}));
    if (file == "-") {
        write_out(bundle, Shown::json);
        return {};
    }
    std::ofstream out(file, std::ios::binary);
    out << bundle;
    out.close();
    if (!out)
        return fail(Problem::invalid_request, fmt::format("{} can't be written", printable(file)),
                    "choose another file, or - for standard output");
    print_sentence(
        fmt::format("{} holds what the checks read on this host, without secrets; view it with: "
                    "vfctl doctor --from {}",
                    file, file),
        options);
    return {};
}

}  // namespace

void add_doctor_commands(CLI::App& app, Session& session) {
    auto const [command, arguments] = add_command(
        app, session, "doctor", "check whether this host is ready, and show the remedies", doctor,
        DoctorArguments{});
    auto* const fleet = command->add_flag("--fleet", arguments.fleet,
                                          "check a fleet and its etcd, as a replica sees them");
    command
        ->add_option("--symptom", arguments.symptom,
                     "show only checks that may explain this symptom, up to the cause")
        ->type_name("SYMPTOM")
        ->excludes(fleet);
    add_source_options(*command, arguments.source);
    fleet->excludes(command->get_option("--from"))->excludes(command->get_option("--local"));
    command->add_flag("--all", arguments.all, "show the checks that pass, too");
    command->add_flag("--rules", arguments.rules,
                      "list the checks and their sources; check nothing");

    auto const [bundle, file, local] = add_command(
        app, session, "support-bundle", "write what the checks read to a file, for support",
        support_bundle, std::string(), false);
    bundle->add_option("FILE", file, "file to write; - for standard output")->required();
    bundle->add_flag("--local", local, "read the host directly, without the daemon");
}

}  // namespace vfmgr
