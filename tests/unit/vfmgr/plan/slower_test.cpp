// SPDX-License-Identifier: Apache-2.0
// When a VF is reported as slower than it was.
#include "vfmgr/plan/choose.hpp"

#include <gmock/gmock.h>

namespace vfmgr {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Verification run_with(char const* test, char const* figure, double value) {
    Verification run;
    run.verdict = Verdict::pass;
    run.path = TestPath::internal_switch;
    TestResult result;
    result.name = test;
    result.verdict = Verdict::pass;
    result.figures[figure] = value;
    run.tests = {result};
    return run;
}

Verification wrote(double mbps) {
    return run_with("write_bandwidth", "bandwidth_mbps", mbps);
}

Verification took(double p50_us) {
    return run_with("write_latency", "p50_us", p50_us);
}

template <class Make>
std::vector<Verification> history(Make make, std::vector<double> const& figures) {
    std::vector<Verification> runs;
    for (auto const figure : figures) runs.push_back(make(figure));
    return runs;
}

TEST(Slower, NamesFigureMedianAndRuns) {
    auto const before = history(wrote, {40, 42, 41.6, 43, 33, 44, 41, 45, 42, 43, 1000});
    auto const warnings = slower_than_before(wrote(21.3), before);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_EQ(warnings[0].test, "write_bandwidth");
    EXPECT_EQ(warnings[0].detail,
              "write_bandwidth: 21.3 Mbit/s is 0.51 times the median of this VF's last 10 runs "
              "(median 42.0, lowest 33.0)");
    EXPECT_THAT(warnings[0].remedy, HasSubstr("other load"));
}

TEST(Slower, BandwidthIsJudgedByMedianAndLowest) {
    auto const steady = history(wrote, {100, 100, 100, 100, 100});
    EXPECT_THAT(slower_than_before(wrote(75), steady), IsEmpty());
    EXPECT_EQ(slower_than_before(wrote(74.9), steady).size(), 1U);
    EXPECT_THAT(slower_than_before(wrote(500), steady), IsEmpty()) << "faster is no harm";
    auto const noisy = history(wrote, {100, 100, 60, 100, 100});
    EXPECT_THAT(slower_than_before(wrote(60), noisy), IsEmpty()) << "it was so before";
    EXPECT_EQ(slower_than_before(wrote(59.9), noisy).size(), 1U);
}

TEST(Slower, LatencyIsJudgedByMedianAndHighest) {
    auto const steady = history(took, {100, 100, 100, 100, 100, 100});
    EXPECT_THAT(slower_than_before(took(133), steady), IsEmpty());
    auto const warnings = slower_than_before(took(171.5), steady);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_EQ(warnings[0].detail,
              "write_latency: p50 171.5 us is 1.72 times the median of this VF's last 6 runs "
              "(median 100.0, highest 100.0)");
    EXPECT_THAT(slower_than_before(took(10), steady), IsEmpty());
    auto const noisy = history(took, {100, 100, 300, 100, 100});
    EXPECT_THAT(slower_than_before(took(300), noisy), IsEmpty());
    EXPECT_EQ(slower_than_before(took(300.1), noisy).size(), 1U);
}

TEST(Slower, FiveRunsAreNeeded) {
    EXPECT_THAT(slower_than_before(wrote(1), history(wrote, {100, 100, 100, 100})), IsEmpty());
    EXPECT_EQ(slower_than_before(wrote(1), history(wrote, {100, 100, 100, 100, 100})).size(), 1U);
}

TEST(Slower, TheLastTenCount) {
    auto before = history(wrote, std::vector<double>(10, 20));
    auto const old = history(wrote, std::vector<double>(90, 1000));
    before.insert(before.end(), old.begin(), old.end());
    EXPECT_THAT(slower_than_before(wrote(16), before), IsEmpty()) << "as it is by now";
}

// Each of these leaves four comparable runs.
TEST(Slower, OnlyLikeIsComparedWithLike) {
    auto const change_one = [](auto change) {
        auto before = history(wrote, {100, 100, 100, 100, 100});
        change(before[2]);
        return slower_than_before(wrote(1), before);
    };
    EXPECT_EQ(change_one([](Verification&) {}).size(), 1U);
    EXPECT_THAT(change_one([](auto& run) { run.verdict = Verdict::fail; }), IsEmpty());
    EXPECT_THAT(change_one([](auto& run) { run.path = TestPath::wire; }), IsEmpty());
    EXPECT_THAT(change_one([](auto& run) { run.path.reset(); }), IsEmpty());
    EXPECT_THAT(change_one([](auto& run) { run.responder = "10.99.0.2:8473"; }), IsEmpty());
    EXPECT_THAT(change_one([](auto& run) { run.tests[0].name = "read_bandwidth"; }), IsEmpty());
    EXPECT_THAT(change_one([](auto& run) { run.tests[0].verdict = Verdict::fail; }), IsEmpty());
    EXPECT_THAT(change_one([](auto& run) { run.tests[0].figures.clear(); }), IsEmpty());
    EXPECT_THAT(change_one([](auto& run) { run.tests[0].figures["bandwidth_mbps"] = 0; }),
                IsEmpty());
}

TEST(Slower, ATestThatFailedSaysSoItself) {
    auto failed = wrote(1);
    failed.tests[0].verdict = Verdict::fail;
    EXPECT_THAT(slower_than_before(failed, history(wrote, {100, 100, 100, 100, 100})), IsEmpty());
}

}  // namespace
}  // namespace vfmgr
