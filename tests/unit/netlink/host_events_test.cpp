// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/host_events.hpp"

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

TEST_F(HostEventsTest, EndsAtOnceThoughNothingHappens) {
    auto const begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(HostEvents::start([this] { changes.release(); }));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace vfmgr
