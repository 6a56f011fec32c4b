// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/report.hpp"

#include <gmock/gmock.h>

namespace vfmgr::verify {
namespace {

TEST(Report, TellsWhatWasSlowThoughItPassed) {
    Verification passed;
    passed.verdict = Verdict::pass;
    passed.warnings = {{"write_latency", "write_latency: slower than it was", "top"}};
    EXPECT_THAT(describe(passed),
                testing::HasSubstr("  warning: write_latency: slower than it was\n"
                                   "    remedy: top\n"));
}

}  // namespace
}  // namespace vfmgr::verify
