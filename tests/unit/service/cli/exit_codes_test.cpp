// SPDX-License-Identifier: Apache-2.0
// How vfctl ends, for every Problem of an answer and of an operation, and for doctor's verdicts.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "api/types/check.hpp"
#include "api/types/exit.hpp"
#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

using test::Api;
using test::vfctl;
using testing::HasSubstr;

// Written out once more: scripts depend on each of them.
std::map<Problem, int> const expected = {
    {Problem::invalid_request, 2},
    {Problem::unauthorized, 5},
    {Problem::forbidden, 5},
    {Problem::not_found, 3},
    {Problem::method_not_allowed, 1},
    {Problem::conflict, 4},
    {Problem::precondition_failed, 4},
    {Problem::vf_in_use, 4},
    {Problem::link_in_use, 4},
    {Problem::other_owner, 4},
    {Problem::pf_renumbered, 4},
    {Problem::pf_gone, 4},
    {Problem::unsupported, 4},
    {Problem::limit_exceeded, 4},
    {Problem::quota_exceeded, 4},
    {Problem::kernel_refused, 1},
    {Problem::hypervisor_refused, 1},
    {Problem::guest_refused, 1},
    {Problem::timed_out, 7},
    {Problem::cancelled, 1},
    {Problem::unavailable, 6},
    {Problem::pf_stuck, 4},
    {Problem::pci_busy, 4},
    {Problem::internal, 1},
};

TEST(ExitCodes, OfEveryProblemThatIsAnswered) {
    for (auto const& [problem, text] : enum_names<Problem>) {
        Api api;
        api.refuse("GET /v1/pfs", {problem, "no", "ask"});
        EXPECT_EQ(vfctl(api, {"pf", "list"}).code, expected.at(problem)) << text;
    }
}

TEST(ExitCodes, OfEveryProblemThatAnOperationEndsWith) {
    for (auto const& [problem, text] : enum_names<Problem>) {
        Api api;
        auto failed = test::operation(OperationState::failed);
        failed.problem = Error{problem, "no", "ask"};
        api.on("GET /v1/operations/op1 wait=60", 200, failed);
        EXPECT_EQ(vfctl(api, {"op", "wait", "op1"}).code, expected.at(problem)) << text;
    }
}

TEST(ExitCodes, AreListedInTheHelp) {
    Api api;
    auto const help = vfctl(api, {"--help"}).out;
    for (auto const& [code, meaning] : exit_meanings)
        EXPECT_THAT(help, HasSubstr(fmt::format("  {:<4} {}\n", static_cast<int>(code), meaning)));
    for (auto const& [problem, code] : expected)
        EXPECT_TRUE(std::ranges::any_of(exit_meanings, [&](auto const& each) {
            return static_cast<int>(each.first) == code;
        })) << enum_name(problem);
}

TEST(ExitCodes, OfDoctorAreItsVerdicts) {
    for (auto const& [result, code] : {std::pair{CheckResult::ok, 0},
                                       {CheckResult::not_applicable, 0},
                                       {CheckResult::unknown, 0},
                                       {CheckResult::warning, 1},
                                       {CheckResult::failed, 2}}) {
        Api api;
        CheckReport report;
        report.findings.emplace_back().result = CheckResult::ok;
        report.findings.emplace_back().result = result;
        api.on("GET /v1/host/checks", 200, report);
        auto const ran = vfctl(api, {"doctor", "-j"});
        EXPECT_EQ(ran.code, code) << enum_name(result) << ran.err;
        EXPECT_EQ(ran.out.empty(), false);
    }
    Api api;
    api.refuse("GET /v1/host/checks", {Problem::limit_exceeded, "too often", "wait"});
    auto const none = vfctl(api, {"doctor"});
    EXPECT_EQ(none.code, 4);
    EXPECT_EQ(none.out, "") << "nothing was checked";
}

}  // namespace
}  // namespace vfmgr
