// SPDX-License-Identifier: Apache-2.0
#include "service/guest/vm_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace vfmgr {
namespace {

using Queue = VmQueue<int>;
using Taken = std::vector<std::pair<std::uint32_t, int>>;

Taken take_all(Queue& queue) {
    Taken taken;
    while (auto next = queue.take()) {
        taken.push_back(*next);
        queue.done(next->first);
    }
    return taken;
}

TEST(VmQueue, ServesOneOfEachVmInTurn) {
    Queue queue({.waiting_each_max = 8, .at_work_each_max = 2});
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.push(7, i));
    ASSERT_TRUE(queue.push(9, 10));
    ASSERT_TRUE(queue.push(3, 20));
    ASSERT_TRUE(queue.push(3, 21));
    EXPECT_EQ(take_all(queue), (Taken{{3, 20}, {7, 0}, {9, 10}, {3, 21}, {7, 1}, {7, 2}}));
    EXPECT_EQ(queue.tracked(), 0U);
}

// However many requests a VM sends: between two of its own, each other VM gets one.
TEST(VmQueue, WhoAsksMuchWaitsBehindItself) {
    Queue queue({.waiting_each_max = 1000, .at_work_each_max = 2});
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(queue.push(3, i));
    for (std::uint32_t cid = 4; cid < 36; ++cid) ASSERT_TRUE(queue.push(cid, 0));
    std::size_t before = 0;
    for (std::size_t others = 0; others < 32; ++before) {
        auto const next = queue.take();
        ASSERT_TRUE(next);
        if (next->first != 3) ++others;
        queue.done(next->first);
    }
    EXPECT_LE(before, 33U);
}

TEST(VmQueue, RefusesWhoseQueueIsFullAndNobodyElse) {
    Queue queue({.waiting_each_max = 2, .at_work_each_max = 2});
    ASSERT_TRUE(queue.push(3, 0));
    ASSERT_TRUE(queue.push(3, 1));
    auto const refused = queue.push(3, 2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unavailable);
    EXPECT_TRUE(queue.push(4, 0));
}

TEST(VmQueue, LeavesOthersAThread) {
    Queue queue({.waiting_each_max = 8, .at_work_each_max = 2});
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(queue.push(3, i));
    ASSERT_TRUE(queue.take());
    ASSERT_TRUE(queue.take());
    EXPECT_FALSE(queue.take());
    ASSERT_TRUE(queue.push(4, 0));
    EXPECT_EQ(queue.take()->first, 4U);
    queue.done(3);
    EXPECT_EQ(queue.take()->first, 3U);
}

TEST(VmQueue, ForgetsWhatAStoppedVmAsked) {
    Queue queue({.waiting_each_max = 8, .at_work_each_max = 2});
    ASSERT_TRUE(queue.push(3, 0));
    ASSERT_TRUE(queue.push(3, 1));
    ASSERT_TRUE(queue.take());
    queue.drop(3);
    EXPECT_FALSE(queue.take());
    queue.done(3);
    EXPECT_EQ(queue.tracked(), 0U);
    queue.drop(4);  // a VM with no requests
    EXPECT_EQ(queue.tracked(), 0U);
}

}  // namespace
}  // namespace vfmgr
