// SPDX-License-Identifier: Apache-2.0
// The table of the tests that give figures, and what a user may choose of it.
#include "vfmgr/proof/measure.hpp"

#include <gmock/gmock.h>

namespace vfmgr::verify {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

Measurement test_of(std::string_view name) {
    for (auto const& each : all_measurements())
        if (each.name == name) return each;
    return {};
}

std::string refusal_of(Selection const& selection) {
    auto const chosen = select_tests(all_measurements(), selection);
    if (chosen) return "chosen";
    EXPECT_EQ(chosen.error().problem, Problem::invalid_request);
    EXPECT_NE(chosen.error().remedy, "");
    return chosen.error().detail + "; " + chosen.error().remedy;
}

TEST(Measurements, AllCanRunAndThoseOfBandwidthHaveAFlow) {
    for (auto const& each : all_measurements()) {
        EXPECT_TRUE(each.run) << each.name;
        EXPECT_EQ(each.flow.has_value(), std::string(each.name).ends_with("_bandwidth"))
            << each.name;
    }
}

TEST(Measurements, GrowWithTheProfile) {
    EXPECT_THAT(measurements_of(all_measurements(), Profile::quick), IsEmpty());
    EXPECT_THAT(measurements_of(all_measurements(), Profile::default_), SizeIs(8));
    auto const deep = measurements_of(all_measurements(), Profile::deep);
    EXPECT_THAT(deep, SizeIs(all_measurements().size()));
    EXPECT_GT(deep.front().load.window, all_measurements().front().load.window);
}

// Only vf-guest has an RDMA CM client and GPUs.
TEST(Measurements, ThatThisProgramCanNotRunAreSkipped) {
    Endpoint const endpoint;
    GuestAttachment const attachment;
    for (auto const* name : {"cm_ping", "gpudirect"}) {
        auto const made = measure(test_of(name), {attachment, "", endpoint, {}, {}});
        EXPECT_EQ(made.result.name, name);
        EXPECT_EQ(made.result.verdict, Verdict::skip);
        EXPECT_EQ(made.result.remedy, "use vf-guest");
    }
}

TEST(Measurements, ABusyHostIsNoFaultOfTheVf) {
    StreamHost const busy{[](StreamRequest const&) -> Result<StreamOffer> {
                              return fail(Problem::unavailable, "other VMs come first", "wait");
                          },
                          [](std::string const&) {}};
    Measurement const test{"some", StreamKind::one_sided,
                           [](Measurement const&, TestBed const& bed) -> Result<Measured> {
                               VFMGR_TRY(auto const offer, bed.host.open({}));
                               ADD_FAILURE() << offer.stream;
                               return Measured();
                           }};
    auto const made = measure(test, {{}, "", {}, busy, {}});
    EXPECT_EQ(made.result.name, "some");
    EXPECT_EQ(made.result.verdict, Verdict::skip);
    EXPECT_EQ(made.result.detail, "other VMs come first");
}

TEST(Selections, OfNamedTestsChangeTheirLoad) {
    Selection selection{{"write_bandwidth", "many_pairs_bandwidth"}};
    selection.message_bytes = 4096;
    selection.depth = 3;
    selection.queue_pairs = 5;
    selection.seconds = 0.25;
    auto const chosen = select_tests(all_measurements(), selection);
    ASSERT_TRUE(chosen) << chosen.error().detail;
    ASSERT_THAT(*chosen, SizeIs(2));
    for (auto const& each : *chosen) {
        EXPECT_EQ(each.load.size.message_bytes, 4096U);
        EXPECT_EQ(each.load.size.depth, 3U);
        EXPECT_EQ(each.load.size.pairs, 5U);
        EXPECT_EQ(each.load.window, std::chrono::milliseconds(250));
        EXPECT_EQ(each.load.messages, 0U);
    }
}

TEST(Selections, RefuseATestThatDoesNotExist) {
    EXPECT_THAT(refusal_of({{"write_speed"}}),
                StartsWith("there is no test write_speed; choose one of ud_ping, cm_ping, "));
}

TEST(Selections, RefuseAnOptionThatATestIgnores) {
    Selection timed{{"write_latency", "ud_ping"}};
    timed.seconds = 1;
    EXPECT_THAT(refusal_of(timed), StartsWith("ud_ping takes no --seconds; leave it out, or run "
                                              "ud_ping by itself; tests that take it: write_b"));
    Selection deep{{"read_latency"}};
    deep.depth = 2;
    EXPECT_THAT(refusal_of(deep), StartsWith("read_latency takes no --depth; "));
    Selection wide{{"send_latency"}};
    wide.queue_pairs = 2;
    EXPECT_THAT(refusal_of(wide), StartsWith("send_latency takes no --queue-pairs; "));
    Selection long_one{{"memory_regions"}};
    long_one.message_bytes = 8 << 20;
    EXPECT_THAT(refusal_of(long_one), StartsWith("memory_regions takes no --size; "));
    Selection counted{{"transfer"}};
    counted.messages = 5;
    EXPECT_THAT(refusal_of(counted), StartsWith("transfer takes no --messages; "));
}

TEST(Selections, RefuseOptionsThatNoNamedTestTakes) {
    Selection unnamed;
    unnamed.queue_pairs = 4;
    EXPECT_THAT(refusal_of(unnamed),
                StartsWith("--queue-pairs changes named tests only, and none is named; name tests "
                           "that take it: write_bandwidth, read_bandwidth, send_bandwidth, "));
}

TEST(Selections, RefuseANumberAndATime) {
    Selection both{{"write_latency"}};
    both.messages = 5;
    both.seconds = 1;
    EXPECT_THAT(refusal_of(both), HasSubstr("use either --messages or --seconds"));
}

TEST(Selections, RefuseAProfileBesideNamedTests) {
    EXPECT_THAT(refusal_of({{"write_latency"}, Profile::deep}),
                StartsWith("--profile chooses the tests, and tests are named already; "));
}

}  // namespace
}  // namespace vfmgr::verify
