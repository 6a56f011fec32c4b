// SPDX-License-Identifier: Apache-2.0
#include "service/cli/interruption.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

namespace vfmgr {
namespace {

TEST(InterruptionDeathTest, CtrlCEndsWithAFarewell) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(
        {
            Interruption const interruption("vfctl: operation op1 goes on\n");
            ::kill(::getpid(), SIGINT);
            ::poll(nullptr, 0, 20'000);
        },
        testing::ExitedWithCode(130), "operation op1 goes on");
}

TEST(InterruptionDeathTest, TheFarewellMayChange) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(
        {
            Interruption interruption("not this\n");
            interruption.set_farewell("vfctl: go on after event 7\n");
            ::kill(::getpid(), SIGINT);
            ::poll(nullptr, 0, 20'000);
        },
        testing::ExitedWithCode(130), "^vfctl: go on after event 7");
}

TEST(InterruptionDeathTest, AfterItCtrlCIsOrdinaryAgain) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    EXPECT_EXIT(
        {
            {
                Interruption const interruption("not this\n");
            }
            ::kill(::getpid(), SIGINT);
            ::poll(nullptr, 0, 20'000);
        },
        testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace vfmgr
