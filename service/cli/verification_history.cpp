// SPDX-License-Identifier: Apache-2.0
#include "service/cli/verification_history.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

using nlohmann::json;

// Returns "rdma_write=193.4 write=941.5": the tests that have that figure.
std::string figure_of_tests(json const& verification, std::string const& figure) {
    constexpr std::string_view kinds[] = {"_bandwidth", "_latency"};
    std::string out;
    for (auto const& test : verification.value("tests", json::array())) {
        auto const at = json::json_pointer("/figures/" + figure);
        if (!test.contains(at) || !test.at(at).is_number()) continue;
        auto name = cell(test, "/name");
        for (auto const& kind : kinds)
            if (name.ends_with(kind)) name.resize(name.size() - kind.size());
        out += fmt::format("{}{}={:.1f}", out.empty() ? "" : " ", name, test.at(at).get<double>());
    }
    return out.empty() ? "-" : out;
}

// Returns the tests that warned.
std::string warned(json const& verification) {
    std::string out;
    for (auto const& warning : verification.value("warnings", json::array()))
        out += (out.empty() ? "" : ",") + cell(warning, "/test");
    return out.empty() ? "-" : out;
}

std::string remark(json const& of, std::string const& run, char const* kind) {
    return fmt::format("{} {}: {}\n  remedy: {}\n", run, kind, cell(of, "/detail"),
                       cell(of, "/remedy"));
}

}  // namespace

Table verification_table(json const& items) {
    Table table{{"RUN", "STARTED", "VERDICT", "ATTACHMENT", "RESPONDER", "PATH", "BANDWIDTH MBPS",
                 "P50 US", "WARNINGS"},
                {}};
    for (auto const& one : items) {
        auto const responder = cell(one, "/responder");
        table.rows.push_back({cell(one, "/run"), cell(one, "/started_at"), cell(one, "/verdict"),
                              cell(one, "/attachment"), responder == "-" ? "this host" : responder,
                              cell(one, "/path"), figure_of_tests(one, "bandwidth_mbps"),
                              figure_of_tests(one, "p50_us"), warned(one)});
    }
    return table;
}

std::string verification_list_page(json const& items, Options const& options) {
    auto const headers = options.no_headers ? Headers::hidden : Headers::shown;
    auto out = as_table(verification_table(items), headers);
    std::string remarks;
    for (auto const& one : items) {
        auto const run = cell(one, "/run");
        if (cell(one, "/detail") != "-") remarks += remark(one, run, "failed");
        for (auto const& warning : one.value("warnings", json::array()))
            remarks += remark(warning, run, "warning");
    }
    return remarks.empty() ? out : out + "\n" + remarks;
}

Result<void> show_verifications(Connection const& connection, Options const& options,
                                std::string const& path) {
    VFMGR_TRY(auto const response, connection.send({.path = path}));
    VFMGR_TRY(auto const body, json_of(response));
    auto const items = body.value("items", json::array());
    print(verification_table(items), verification_list_page(items, options), response.body,
          options);
    return {};
}

}  // namespace vfmgr
