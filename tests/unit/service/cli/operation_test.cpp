// SPDX-License-Identifier: Apache-2.0
// vfctl op cancel, and what an operation's time went to.
#include <gmock/gmock.h>

#include "api/types/json.hpp"
#include "tests/unit/service/cli/answering_api.hpp"
#include "tests/unit/service/cli/answers.hpp"

namespace vfmgr {
namespace {

using testing::HasSubstr;

Operation ended_with(Problem problem) {
    auto failed = test::operation(OperationState::failed);
    failed.problem = Error{problem, "it failed so", "ask"};
    return failed;
}

TEST(CancelOperation, WaitsUntilItHasEnded) {
    test::Api api;
    api.on("POST /v1/operations/op1/cancel", 202, test::operation(OperationState::running));
    api.on("GET /v1/operations/op1 wait=60", 200, test::operation(OperationState::running));
    api.on("GET /v1/operations/op1 wait=60", 200, ended_with(Problem::cancelled));
    auto const done = test::vfctl(api, {"op", "cancel", "op1"});
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_THAT(done.err, HasSubstr("operation op1 was cancelled"));
}

TEST(CancelOperation, ReportsHowElseItEnded) {
    for (auto const& [end, code, said] :
         {std::tuple{test::operation(OperationState::succeeded), 4, "past its last step"},
          std::tuple{ended_with(Problem::kernel_refused), 1, "it failed so"}}) {
        test::Api api;
        api.on("POST /v1/operations/op1/cancel", 202, test::operation(OperationState::running));
        api.on("GET /v1/operations/op1 wait=60", 200, end);
        auto const done = test::vfctl(api, {"op", "cancel", "op1"});
        EXPECT_EQ(done.code, code);
        EXPECT_THAT(done.err, HasSubstr(said));
    }
}

TEST(ShowOperation, SumsWhatItsTimeWentTo) {
    auto operation = test::operation(OperationState::succeeded);
    operation.created_at = parse_rfc3339("2026-01-31T12:00:00.000Z").value();
    operation.finished_at = parse_rfc3339("2026-01-31T12:00:00.100Z");
    operation.spans = {{SpanKind::claim, "pf 0000:01:00.0", 100, 20},
                       {SpanKind::commit, "journal", 1000, 5500},
                       {SpanKind::step, "reset VF 2", 6500, 60000},
                       {SpanKind::commit, "end", 66500, 4500}};
    test::Api api;
    api.on("GET /v1/operations/op1", 200, operation);
    EXPECT_THAT(test::vfctl(api, {"op", "show", "op1", "--timing"}).out,
                HasSubstr("AT_MS  TOOK_MS  KIND    WHAT\n"
                          "0.1    0.0      claim   pf 0000:01:00.0\n"
                          "1.0    5.5      commit  journal\n"
                          "6.5    60.0     step    reset VF 2\n"
                          "66.5   4.5      commit  end\n"));
    auto const page = test::vfctl(api, {"op", "show", "op1", "--timing"}).out;
    EXPECT_THAT(page, HasSubstr("KIND    TOOK_MS\n"
                                "claim   0.0\n"
                                "commit  10.0\n"
                                "step    60.0\n"
                                "other   30.0\n"));
}

}  // namespace
}  // namespace vfmgr
