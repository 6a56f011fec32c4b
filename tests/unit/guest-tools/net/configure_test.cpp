// SPDX-License-Identifier: Apache-2.0
// A veth stands in for the VF, except for its RDMA device.
#include "guest-tools/net/configure.hpp"

#include <gmock/gmock.h>

#include "guest-tools/net/address_check.hpp"
#include "tests/unit/temporary_folder.hpp"
#include "tests/unit/vfmgr/netlink/two_nics.hpp"
#include "vfmgr/netlink/ip.hpp"

namespace vfmgr::guest {
namespace {

using test::soon;
using testing::Contains;
using testing::IsEmpty;

class Configure : public test::TwoNics {
  protected:
    GuestAttachment requested(std::string const& name, IpAddress const& address) {
        GuestAttachment expected;
        expected.attachment = "of-" + name;
        expected.mac = *netdev(name).mac;
        expected.address = address;
        expected.mtu = 9000;
        expected.rdma = RdmaMode::none;
        return expected;
    }
    Result<Configured> configured(std::string const& name, IpAddress const& address) {
        EXPECT_TRUE(change_netdev(*socket_, "far" + name.substr(4),
                                  {netdev("far" + name.substr(4)).ifindex, {}, 9000}, soon()));
        return configure(requested(name, address), netdev(name), state_, soon());
    }
    NetdevAddress at(std::string const& name, IpAddress const& address) {
        return {netdev(name).ifindex, address, 24};
    }
    // Everything that set-up changes.
    struct Seen {
        std::vector<NetdevAddress> addresses;
        std::vector<std::vector<std::byte>> rules;
        ArpSettings arp;
        bool operator==(Seen const&) const = default;
    };
    Seen collect_facts(std::string const& name) {
        NlRequest request(RTM_GETRULE, NLM_F_DUMP);
        request.header(rtmsg{});
        Seen seen{{}, {}, read_arp_settings("/proc", name).value()};
        auto const rules = socket_->dump(request, "RTM_GETRULE", soon()).value();
        for (auto const& rule : rules) seen.rules.push_back(rule.payload);
        auto const addresses = list_addresses(*socket_, soon()).value();
        for (auto const& each : addresses)
            if (each.address.family == IpAddress::Family::v4) seen.addresses.push_back(each);
        return seen;
    }

    test::TemporaryFolder const folder_;
    StateFolder const state_{folder_.path() / "state"};
};

TEST_F(Configure, SetsUpAndLeavesNothing) {
    with_two_wires([&] {
        auto const before = collect_facts("near0");
        auto const done = configured("near0", first_address);
        ASSERT_TRUE(done) << done.error().detail;
        EXPECT_TRUE(done->complete);
        EXPECT_THAT(state_.load(), testing::ElementsAre(*done));
        EXPECT_EQ(netdev("near0").mtu, 9000U);
        auto const during = collect_facts("near0");
        EXPECT_THAT(during.addresses, Contains(at("near0", first_address)));
        EXPECT_EQ(during.arp, arp_settings_of_vf);
        EXPECT_EQ(during.rules.size(), before.rules.size() + 1);
        EXPECT_EQ(done->arp_before, before.arp);

        ASSERT_TRUE(clean_up(*done, state_, soon()));
        EXPECT_EQ(collect_facts("near0"), before);
        EXPECT_FALSE(netdev("near0").up);
        EXPECT_THAT(state_.load(), IsEmpty());
    });
}

// As udev does, after the netdev was observed.
TEST_F(Configure, ANetdevThatWasRenamedMeanwhileIsFound) {
    with_two_wires([&] {
        auto seen = netdev("near0");
        seen.name = "eth0";
        auto expected = requested("near0", first_address);
        expected.mtu = 1500;
        auto const done = configure(expected, seen, state_, soon());
        ASSERT_TRUE(done) << done.error().detail;
        EXPECT_EQ(done->ifname, "near0");
        EXPECT_EQ(read_arp_settings("/proc", "near0"), arp_settings_of_vf);
    });
}

TEST_F(Configure, TheSecondVfOfANetworkLeavesTheFirstAlone) {
    with_two_wires([&] {
        auto const first = configured("near0", first_address);
        ASSERT_TRUE(first) << first.error().detail;
        auto const alone = collect_facts("near0");
        auto const second = configured("near1", second_address);
        ASSERT_TRUE(second) << second.error().detail;
        ASSERT_TRUE(clean_up(*second, state_, soon()));
        EXPECT_EQ(collect_facts("near0"), alone);
        EXPECT_THAT(state_.load(), testing::ElementsAre(*first));
    });
}

TEST_F(Configure, ANetdevThatHasGoneLeavesNoRule) {
    with_two_wires([&] {
        auto const before = collect_facts("near1").rules;
        auto const done = configured("near0", first_address);
        ASSERT_TRUE(done) << done.error().detail;
        ASSERT_TRUE(delete_netdev(*socket_, netdev("near0"), soon()));
        EXPECT_NE(collect_facts("near1").rules, before);
        ASSERT_TRUE(clean_up(*done, state_, soon()));
        EXPECT_EQ(collect_facts("near1").rules, before);
    });
}

}  // namespace
}  // namespace vfmgr::guest
