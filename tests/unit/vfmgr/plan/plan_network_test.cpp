// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

HostView two_pfs() {
    auto view = host();
    auto other = pf(0);
    other.info.pci = second_pf;
    other.info.ifname = "enp2s0";
    other.interfaces[0].id.pf = second_pf;
    other.interfaces[0].ifname = "enp2s0";
    view.kernel.pfs[second_pf] = other;
    return view;
}

struct InUse {
    HostView view = two_pfs();
    DesiredState desired = with_attachment(example::desired(), view, "aaaa0001", ask());
    Network network = train();
    [[nodiscard]] Result<Plan> plan() const { return plan_network(view, desired, network); }
    [[nodiscard]] std::string refusal() const {
        auto const planned = plan();
        return planned ? "none" : planned.error().detail;
    }
};

TEST(PlanNetwork, ChangesNothingOnTheHost) {
    auto const made = plan_network(host(), {}, train());
    ASSERT_TRUE(made) << made.error().detail;
    EXPECT_THAT(made->steps, IsEmpty());
    EXPECT_TRUE(plan_network(host(), desired(), train())) << "it is as it was";
    auto nowhere = train();
    nowhere.pfs.clear();
    EXPECT_TRUE(plan_network(host(), {}, nowhere)) << "PFs may come later";
}

TEST(PlanNetwork, KeepsWhatAttachmentsDependOn) {
    for (auto const& change : std::vector<void (*)(Network&)>{
             [](Network& one) { one.mtu = 1500; }, [](Network& one) { one.vlan = 101; },
             [](Network& one) { one.vlan.reset(); },
             [](Network& one) { one.rdma = RdmaMode::none; },
             [](Network& one) { one.prefix = prefix("192.168.100.0/23"); }}) {
        InUse used;
        change(used.network);
        EXPECT_EQ(used.refusal(),
                  "network train is used by VM vm1 (attachment aaaa0001), so its VLAN, P_Key, "
                  "prefix, MTU and RDMA mode can't be changed");
        EXPECT_EQ(used.plan().error().remedy, "detach it first: vfctl detach aaaa0001");
        used.desired.attachments.clear();
        EXPECT_EQ(used.refusal(), "none");
    }
    InUse moved;
    moved.network.pfs[0].host_address = ip("192.168.100.4");
    EXPECT_THAT(moved.refusal(), HasSubstr("the host's address on 0000:01:00.0 can't be changed"));
    InUse left;
    left.network.pfs.clear();
    EXPECT_THAT(left.refusal(), HasSubstr("the host's address on 0000:01:00.0 can't be removed"));
}

TEST(PlanNetwork, KeepsThePartitionOfItsAttachments) {
    InUse used;
    used.network.pkey = Pkey{1};
    EXPECT_THAT(used.refusal(), HasSubstr("so its VLAN, P_Key, prefix, MTU and RDMA mode can't"));
}

// Tests send with the DSCP, VMs mark their own traffic; ranges are for later choices.
TEST(PlanNetwork, InUseItTakesAnotherDscpOtherRangesAndMorePfs) {
    InUse used;
    used.network.dscp = 26;
    used.network.ranges = {{ip("192.168.100.50"), ip("192.168.100.99")}};
    used.network.pfs.push_back({second_pf, ip("192.168.100.4")});
    // The route to the VM that is attached.
    HostInterface tagged;
    tagged.id = {pf_address, 100};
    tagged.ifname = "enp1s0.100";
    tagged.ours = true;
    used.view.kernel.pfs[pf_address].interfaces.push_back(tagged);
    used.view.kernel.routes.push_back({prefix("192.168.100.1/32"), "enp1s0.100"});
    EXPECT_EQ(used.refusal(), "none");
}

TEST(PlanNetwork, AVfInQuarantineUsesItToo) {
    InUse used;
    used.desired.quarantine[{pf_address, 0}].attachment = used.desired.attachments["aaaa0001"];
    used.desired.attachments.clear();
    used.network.mtu = 1500;
    EXPECT_THAT(used.refusal(), HasSubstr("is used by VM vm1"));
    EXPECT_THAT(plan_network_removal(used.desired, "train").error().detail,
                HasSubstr("it can't be removed"));
}

TEST(PlanNetwork, IsRemovedWhenNothingUsesIt) {
    EXPECT_TRUE(plan_network_removal(desired(), "train"));
    EXPECT_EQ(plan_network_removal(desired(), "other").error().problem, Problem::not_found);
    EXPECT_EQ(plan_network_removal(InUse().desired, "train").error().problem, Problem::conflict);
    EXPECT_TRUE(plan_network_removal(InUse().desired, "plain"));
}

TEST(PlanNetwork, RefusesAPrefixThatCoversAHostRoute) {
    auto view = host(0);
    view.kernel.routes.push_back({prefix("192.168.0.0/16"), "eno1"});
    auto const error = plan_network(view, {}, train()).error();
    EXPECT_EQ(error.problem, Problem::conflict);
    EXPECT_THAT(error.detail, HasSubstr("192.168.0.0/16 over eno1"));
    view.kernel.routes.back().ifname = "enp1s0";
    EXPECT_FALSE(plan_network(view, {}, train())) << "the network is tagged, enp1s0 is not";
    EXPECT_TRUE(plan_network(view, desired(), train())) << "it was there before the route";
}

TEST(PlanNetwork, RefusesThePrefixOfAnotherNetwork) {
    auto other = train();
    other.name = "other";
    other.vlan = 200;
    EXPECT_EQ(plan_network(host(), desired(), other).error().detail,
              "network other (192.168.100.0/24) overlaps network train (192.168.100.0/24)");
    other.prefix = prefix("192.168.101.0/24");
    other.pfs = {{pf_address, ip("192.168.101.1")}};
    EXPECT_TRUE(plan_network(host(), desired(), other));
}

TEST(PlanNetwork, RefusesAPfThatCannotCarryIt) {
    auto bonded = host();
    bonded.kernel.pfs[pf_address].info.controller = "bond0";
    EXPECT_THAT(plan_network(bonded, {}, train()).error().detail,
                HasSubstr("enp1s0 is part of bond0"));
    EXPECT_TRUE(plan_network(bonded, desired(), train())) << "it was there before the bond";
    auto infiniband = host();
    infiniband.kernel.pfs[pf_address].info.link_layer = LinkLayer::infiniband;
    EXPECT_EQ(plan_network(infiniband, {}, train()).error().problem, Problem::unsupported);
    auto on_infiniband = plain();
    on_infiniband.rdma = RdmaMode::auto_;
    EXPECT_TRUE(plan_network(infiniband, {}, on_infiniband));
    auto on_absent = train();
    on_absent.pfs = {{second_pf, ip("192.168.100.3")}};
    auto const error = plan_network(host(), {}, on_absent).error();
    EXPECT_EQ(error.problem, Problem::not_found);
    EXPECT_THAT(error.remedy, HasSubstr("0000:01:00.0 (enp1s0)"));
    auto known = desired();
    known.networks["train"].network = on_absent;
    on_absent.dscp = 26;
    EXPECT_TRUE(plan_network(host(), known, on_absent)) << "a card that is out for repair";
}

TEST(PlanNetwork, OnInfiniBandHasAPartitionAndNothingOfEthernets) {
    auto view = two_pfs();
    for (auto const& pci : {pf_address, second_pf})
        view.kernel.pfs[pci].info.link_layer = LinkLayer::infiniband;
    auto const refusal = [&](Network const& network, DesiredState const& known = {}) {
        auto const planned = plan_network(view, known, network);
        return planned ? "none" : planned.error().detail + "; " + planned.error().remedy;
    };
    auto network = plain();
    network.vlan.reset();
    network.rdma = RdmaMode::auto_;
    network.pkey = Pkey{1, PkeyMembership::limited};
    EXPECT_EQ(refusal(network), "none");
    auto wrong = network;
    wrong.dscp = 26;
    EXPECT_THAT(refusal(wrong), HasSubstr("has DSCP 26, but enp1s0 is an InfiniBand PF"));
    wrong = network;
    wrong.rdma = RdmaMode::rxe;
    EXPECT_THAT(refusal(wrong), HasSubstr("has rdma rxe (SoftRoCE), but enp1s0"));
    EXPECT_THAT(plan_network(host(), {}, network).error().detail,
                HasSubstr("has P_Key 0x0001, but enp1s0 is an Ethernet PF"));

    DesiredState known;
    auto other = network;
    other.name = "other";
    other.prefix = prefix("10.9.0.0/24");
    for (auto& on : other.pfs) on.host_address = ip("10.9.0.1");
    other.pkey = Pkey{2};
    known.networks["other"] = {other};
    EXPECT_THAT(refusal(network, known),
                HasSubstr("enp1s0 carries network other, which is in another partition than"));
    known.networks["other"].network.pkey = Pkey{1};
    EXPECT_EQ(refusal(network, known), "none") << "another membership";
    known.networks["other"].network.pkey.reset();
    EXPECT_THAT(refusal(network, known), HasSubstr("another partition")) << "the default one";
    known.networks["other"].network.pkey = Pkey{2};
    known.networks["other"].network.pfs = {{second_pf, ip("10.9.0.1")}};
    EXPECT_EQ(refusal(network, known), "none") << "another port";
}

TEST(PlanNetwork, AHostHasAtMost256) {
    auto many = DesiredState{};
    for (int i = 0; i < 256; ++i) {
        auto& one = many.networks[fmt::format("n{}", i)].network;
        one.name = fmt::format("n{}", i);
        one.prefix = prefix(fmt::format("10.{}.0.0/16", i).c_str());
    }
    EXPECT_EQ(plan_network(host(), many, train()).error().problem, Problem::limit_exceeded);
    auto changed = many.networks["n7"].network;
    changed.mtu = 9000;
    EXPECT_TRUE(plan_network(host(), many, changed));
}

}  // namespace
}  // namespace vfmgr
