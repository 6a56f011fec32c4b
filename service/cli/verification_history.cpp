// SPDX-License-Identifier: Apache-2.0
#include "service/cli/verification_history.hpp"

#include <fmt/format.h>

#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

// Returns "rdma_write=193.4 write=941.5": the tests that have that figure.
std::string figure_of_tests(Verification const& run, std::string const& figure) {
    constexpr std::string_view kinds[] = {"_bandwidth", "_latency"};
    std::string out;
    for (auto const& test : run.tests) {
        auto const value = test.figures.find(figure);
        if (value == test.figures.end()) continue;
        auto name = cell(test.name);
        for (auto const& kind : kinds)
            if (name.ends_with(kind)) name.resize(name.size() - kind.size());
        out += fmt::format("{}{}={:.1f}", out.empty() ? "" : " ", name, value->second);
    }
    return out.empty() ? "-" : out;
}

// Returns the tests that warned.
std::string warned(Verification const& run) {
    std::string out;
    for (auto const& warning : run.warnings) out += (out.empty() ? "" : ",") + cell(warning.test);
    return out.empty() ? "-" : out;
}

template <class Of>
std::string remark(Of const& of, std::string const& run, char const* kind) {
    return fmt::format("{} {}: {}\n  remedy: {}\n", run, kind, cell(of.detail), cell(of.remedy));
}

}  // namespace

Table verification_table(std::vector<Verification> const& runs) {
    Table table{{"RUN", "STARTED", "VERDICT", "ATTACHMENT", "RESPONDER", "PATH", "BANDWIDTH MBPS",
                 "P50 US", "WARNINGS"},
                {}};
    for (auto const& one : runs)
        table.rows.push_back(
            {cell(one.run), cell(one.started_at), cell(one.verdict), cell(one.attachment),
             one.responder ? cell(one.responder) : "this host", cell(one.path),
             figure_of_tests(one, "bandwidth_mbps"), figure_of_tests(one, "p50_us"), warned(one)});
    return table;
}

std::string verification_list_page(std::vector<Verification> const& runs, Options const& options) {
    auto const headers = options.no_headers ? Headers::hidden : Headers::shown;
    auto out = as_table(verification_table(runs), headers);
    std::string remarks;
    for (auto const& one : runs) {
        auto const run = cell(one.run);
        if (!one.detail.empty()) remarks += remark(one, run, "failed");
        for (auto const& warning : one.warnings) remarks += remark(warning, run, "warning");
    }
    return remarks.empty() ? out : out + "\n" + remarks;
}

Result<void> show_verifications(Connection const& connection, Options const& options,
                                std::string const& path) {
    VFMGR_TRY(auto const response, connection.list({.path = path}));
    if (is_document(options.format)) return print_document(response, options);
    VFMGR_TRY(auto const runs, value_of<ItemList<Verification>>(response));
    return print(verification_table(runs.items), verification_list_page(runs.items, options),
                 response.body, options);
}

}  // namespace vfmgr
