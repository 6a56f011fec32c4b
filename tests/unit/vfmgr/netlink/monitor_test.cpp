// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/monitor.hpp"

#include <thread>

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::soon;

using WaitUntil = test::Networked;

TEST_F(WaitUntil, WhatHoldsNeedsNoEvent) {
    auto monitor = EventMonitor::open().value();
    auto const past = steady_clock::now() - milliseconds(1);
    EXPECT_EQ(wait_until(monitor, past, [] { return Result<bool>(true); }).value(), Waited::holds);
}

TEST_F(WaitUntil, EndsAtTheDeadline) {
    auto monitor = EventMonitor::open().value();
    auto const start = steady_clock::now();
    int asked = 0;
    auto const waited = wait_until(monitor, start + milliseconds(50), [&] {
        ++asked;
        return Result<bool>(false);
    });
    EXPECT_EQ(waited.value(), Waited::deadline_passed);
    EXPECT_GE(steady_clock::now() - start, milliseconds(50));
    EXPECT_GE(asked, 2) << "once before and once at the deadline";
}

TEST_F(WaitUntil, LooksAgainAfterALinkChange) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    ASSERT_TRUE(test::make_veth(socket, {"near0", "far0"}));
    auto monitor = EventMonitor::open().value();
    auto const near = get_netdev(socket, "near0", soon()).value();
    std::thread other([&] {
        auto own = NlSocket::open(NlProtocol::route).value();
        EXPECT_TRUE(change_netdev(own, "near0", {near.ifindex, true, {}}, soon()));
    });
    auto const waited = wait_until(monitor, soon(), [&]() -> Result<bool> {
        VFMGR_TRY(auto const now, get_netdev(socket, "near0", soon()));
        return now.up;
    });
    other.join();
    EXPECT_EQ(waited.value(), Waited::holds);
}

TEST_F(WaitUntil, EventsThatKeepComingDoNotCarryItPastTheDeadline) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    ASSERT_TRUE(test::make_veth(socket, {"near0", "far0"}));
    auto const near = get_netdev(socket, "near0", soon()).value();
    auto monitor = EventMonitor::open().value();
    bool up = false;
    auto const waited = wait_until(monitor, steady_clock::now() + milliseconds(100), [&] {
        up = !up;  // each read makes the next event
        EXPECT_TRUE(change_netdev(socket, "near0", {near.ifindex, up, {}}, soon()));
        return Result<bool>(false);
    });
    EXPECT_EQ(waited.value(), Waited::deadline_passed);
}

TEST_F(WaitUntil, AnErrorEndsIt) {
    auto monitor = EventMonitor::open().value();
    auto const waited = wait_until(
        monitor, soon(), []() -> Result<bool> { return fail(Problem::not_found, "gone", "none"); });
    ASSERT_FALSE(waited);
    EXPECT_EQ(waited.error().detail, "gone");
}

}  // namespace
}  // namespace vfmgr
