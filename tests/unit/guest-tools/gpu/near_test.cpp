// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/near.hpp"

#include <gmock/gmock.h>

#include "guest-tools/gpu/topology.hpp"
#include "tests/unit/guest-tools/gpu/standin_gpu.hpp"

namespace vfmgr::guest::gpu {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

FoundGpus found_as(std::string const& personality) {
    StandinGpu standin(personality);
    auto const info = join(standin.gpu, checks::read_machine({}));
    return {std::move(standin.cuda), {standin.gpu}, {info}};
}

std::vector<GpuNicPair> pair_with(FoundGpus const& found) {
    GpuNicPair pair;
    pair.gpu = found.gpus[0].pci;
    pair.nic = {0, 0x7f, 0, 0};
    pair.because = "as it is";
    pair.remedy = "another GPU";
    return {pair};
}

TEST(MeasureNear, CopiesWithoutANic) {
    auto const found = found_as("h200");
    auto const tests = measure(found, checks::read_machine({}), {});
    ASSERT_THAT(tests, SizeIs(2));
    EXPECT_THAT(tests[0].name, HasSubstr("copies "));
    EXPECT_EQ(tests[0].verdict, Verdict::pass) << tests[0].detail;
    EXPECT_GT(tests[0].figures.at("to_gpu_gb_per_s"), 0);
    EXPECT_GT(tests[0].figures.at("from_gpu_gb_per_s"), 0);
    EXPECT_EQ(tests[1].name, "pairs");
    EXPECT_EQ(tests[1].detail, "not run: no RDMA device");
    EXPECT_EQ(tests[1].verdict, Verdict::skip);
    EXPECT_THAT(tests[1].remedy, Not(IsEmpty()));
}

TEST(MeasureNear, ANicWithoutAnAddressIsNotRun) {
    auto const found = found_as("h200");
    auto const tests = measure(found, checks::read_machine({}), pair_with(found));
    ASSERT_THAT(tests, SizeIs(2));
    EXPECT_EQ(tests[1].verdict, Verdict::skip);
    EXPECT_THAT(tests[1].detail, HasSubstr("not run: NIC 0000:7f:00.0 has no netdev"));
    EXPECT_THAT(tests[1].figures, IsEmpty());
}

TEST(MeasureNear, AGpuWithoutGpudirectIsCopiedToOnly) {
    auto const found = found_as("geforce");
    auto const tests = measure(found, checks::read_machine({}), pair_with(found));
    EXPECT_EQ(tests.at(0).verdict, Verdict::pass);
    EXPECT_EQ(tests.at(1).detail, "not run: as it is");
    EXPECT_EQ(tests.at(1).remedy, "another GPU");
}

}  // namespace
}  // namespace vfmgr::guest::gpu
