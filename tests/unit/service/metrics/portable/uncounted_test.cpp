// SPDX-License-Identifier: Apache-2.0
// Tests what a portable vfmgrd answers: it is linked without prometheus-cpp.
#include <gmock/gmock.h>

#include "service/metrics/counted.hpp"

namespace vfmgr {
namespace {

TEST(Uncounted, SaysThatItHasNoMetricsAndWhichPackageHas) {
    Metrics metrics;
    metrics.operation_ended({});
    metrics.emitted({{}});
    metrics.answered(nullptr, "GET", 200);
    auto const text = metrics.text({});
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().problem, Problem::unsupported);
    EXPECT_THAT(text.error().remedy, testing::HasSubstr("package for Debian"));
}

}  // namespace
}  // namespace vfmgr
