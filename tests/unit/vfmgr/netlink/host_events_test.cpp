// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/monitor.hpp"

#include <cstdlib>
#include <semaphore>

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using test::soon;

struct HostEventsTest : test::Networked {
    std::counting_semaphore<> changes{0};

    bool heard() { return changes.try_acquire_until(soon()); }
};

TEST_F(HostEventsTest, TellsOfALinkThatComesAndOfItsChange) {
    auto const events = HostEvents::start([this] { changes.release(); });
    ASSERT_TRUE(events) << events.error().detail;
    auto socket = NlSocket::open(NlProtocol::route).value();
    ASSERT_TRUE(test::make_veth(socket, {"near0", "far0"}));
    EXPECT_TRUE(heard());
    auto const near = get_netdev(socket, "near0", soon()).value();
    while (changes.try_acquire_for(std::chrono::milliseconds(200))) {
    }
    ASSERT_TRUE(change_netdev(socket, "near0", {near.ifindex, true, {}}, soon()));
    EXPECT_TRUE(heard());
}

TEST_F(HostEventsTest, TellsOfACrowdTogether) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    ASSERT_TRUE(test::make_veth(socket, {"near0", "far0"}));
    auto const near = get_netdev(socket, "near0", soon()).value();
    auto const events = HostEvents::start([this] { changes.release(); });
    ASSERT_TRUE(events) << events.error().detail;
    auto const begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 200; ++i)
        ASSERT_TRUE(change_netdev(socket, "near0", {near.ifindex, i % 2 == 0, {}}, soon()));
    EXPECT_TRUE(heard());
    int told = 1;
    while (changes.try_acquire_for(std::chrono::milliseconds(300))) ++told;
    // The first at once, the others every tenth of a second, the last after the last change.
    auto const tenths = (std::chrono::steady_clock::now() - begin) / std::chrono::milliseconds(100);
    EXPECT_LE(told, 2 + tenths);
    EXPECT_LT(told, 100);
}

// A firewall's restart begins with that, and opens the host to VMs.
TEST_F(HostEventsTest, TellsOfOurFilterAndOfNobodyElses) {
    ASSERT_EQ(std::system("nft 'add table inet vfmgr; add table inet theirs'"), 0);
    auto const events = HostEvents::start([this] { changes.release(); });
    ASSERT_TRUE(events) << events.error().detail;
    ASSERT_EQ(std::system("nft 'add chain inet theirs other; delete table inet theirs'"), 0);
    EXPECT_FALSE(changes.try_acquire_for(std::chrono::milliseconds(500))) << "of theirs";
    ASSERT_EQ(std::system("nft flush ruleset"), 0);
    EXPECT_TRUE(heard());
}

TEST_F(HostEventsTest, EndsAtOnceThoughNothingHappens) {
    auto const begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(HostEvents::start([this] { changes.release(); }));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace vfmgr
