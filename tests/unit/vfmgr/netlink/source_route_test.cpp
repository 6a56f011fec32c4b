// SPDX-License-Identifier: Apache-2.0
// Two interfaces on one network; the kernel reports which route it would take.
#include "vfmgr/netlink/ip.hpp"

#include <fstream>

#include "tests/unit/vfmgr/netlink/two_nics.hpp"

namespace vfmgr {
namespace {

using test::soon;

IpAddress const routed_peer = IpAddress::parse("192.168.100.3").value();

struct Way {
    IpAddress from;
    IpAddress to;
    std::optional<int> in{};  // the interface that received the packet
};

class SourceRoute : public test::TwoNics {
  protected:
    void with_two_interfaces(std::function<void()> const& body) {
        with_two_nics([&] {
            first_ = {netdev("near0").ifindex, first_address, 24};
            second_ = {netdev("near1").ifindex, second_address, 24};
            body();
        });
    }
    // Returns the outgoing interface; the negative errno where the kernel drops it.
    int way_of(Way const& way) {
        rtmsg header{};
        header.rtm_family = family_of(way.to);
        header.rtm_src_len = header.rtm_dst_len = 32;
        NlRequest request(RTM_GETROUTE, 0);
        request.header(header).put_ip(RTA_DST, way.to).put_ip(RTA_SRC, way.from);
        if (way.in) request.put(RTA_IIF, *way.in);
        auto const reply = socket_->ask(request, "RTM_GETROUTE", soon()).value();
        if (!reply.ack.ok()) return -reply.ack.error;
        auto const body = after(reply.answers.at(0).payload, sizeof(rtmsg));
        return Attributes(body).value<int>(RTA_OIF).value_or(0);
    }
    std::size_t rules() {
        NlRequest request(RTM_GETRULE, NLM_F_DUMP);
        request.header(rtmsg{});
        return socket_->dump(request, "RTM_GETRULE", soon())->size();
    }

    NetdevAddress first_, second_;
};

TEST_F(SourceRoute, WhatIsSentFromAnAddressLeavesByItsInterface) {
    with_two_interfaces([&] {
        auto const before = rules();
        EXPECT_EQ(way_of({second_address, routed_peer}), first_.ifindex)
            << "the kernel's choice: the first of two equal routes";
        for (auto round = 0; round < 2; ++round) {  // the second finds everything in place
            ASSERT_TRUE(add_source_route(*socket_, first_, soon()));
            ASSERT_TRUE(add_source_route(*socket_, second_, soon()));
        }
        EXPECT_EQ(rules(), before + 2);
        EXPECT_EQ(way_of({first_address, routed_peer}), first_.ifindex);
        EXPECT_EQ(way_of({second_address, routed_peer}), second_.ifindex);
        for (auto round = 0; round < 2; ++round) {
            ASSERT_TRUE(remove_source_route(*socket_, first_, soon()));
            ASSERT_TRUE(remove_source_route(*socket_, second_, soon()));
        }
        EXPECT_EQ(rules(), before);
        EXPECT_EQ(way_of({second_address, routed_peer}), first_.ifindex);
    });
}

// So rp_filter need not be loosened.
TEST_F(SourceRoute, TheStrictFilterLetsInWhatComesByTheSecondInterface) {
    with_two_interfaces([&] {
        EXPECT_GT(way_of({routed_peer, second_address, second_.ifindex}), 0);
        std::ofstream("/proc/sys/net/ipv4/conf/all/rp_filter") << 1;
        EXPECT_LT(way_of({routed_peer, second_address, second_.ifindex}), 0);
        ASSERT_TRUE(add_source_route(*socket_, second_, soon()));
        EXPECT_GT(way_of({routed_peer, second_address, second_.ifindex}), 0);
        EXPECT_GT(way_of({routed_peer, first_address, first_.ifindex}), 0);
    });
}

TEST_F(SourceRoute, GoesWithAnInterfaceThatHasGone) {
    with_two_interfaces([&] {
        auto const before = rules();
        ASSERT_TRUE(add_source_route(*socket_, second_, soon()));
        ASSERT_TRUE(delete_netdev(*socket_, netdev("near1"), soon()));
        EXPECT_EQ(rules(), before + 1) << "a rule belongs to no interface";
        ASSERT_TRUE(remove_source_route(*socket_, second_, soon()));
        EXPECT_EQ(rules(), before);
    });
}

TEST_F(SourceRoute, HoldsForIPv6) {
    with_two_interfaces([&] {
        auto address = second_;
        address.address = IpAddress::parse("2001:db8::11").value();
        address.prefix_length = 64;
        ASSERT_TRUE(add_address(*socket_, address, soon()));
        auto const before = rules();
        ASSERT_TRUE(add_source_route(*socket_, address, soon()));
        EXPECT_EQ(rules(), before + 1);
        ASSERT_TRUE(remove_source_route(*socket_, address, soon()));
        EXPECT_EQ(rules(), before);
    });
}

TEST(SourceTable, IsTheAddress) {
    EXPECT_EQ(source_table(IpAddress::parse("192.168.100.10").value()), 0xc0a8640aU);
    EXPECT_EQ(source_table(IpAddress::parse("2001:db8::11").value()), 0x20010db8U ^ 0x11U);
}

}  // namespace
}  // namespace vfmgr
