// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/drift.hpp"

#include <gmock/gmock.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::IsEmpty;

// VF 2 is attached to vm1, and everything is as desired.
struct DriftTest : testing::Test {
    HostView view = host(4);
    DesiredState desired;
    Attachment attachment;

    void SetUp() override {
        attachment.id = "3f9c2b1d";
        attachment.vf = {pf_address, 2};
        attachment.vf_pci = vf_now().pci;
        attachment.vm_uuid = vm1_uuid;
        attachment.vm = "vm1";
        attachment.state = AttachmentState::attached;
        attachment.live = true;
        attachment.settings.mac = mac(2);
        attachment.settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
        attachment.settings.trust = true;
        keep();
        vf_now().driver = "vfio-pci";
        vf_now().settings = overlay(vf_now().settings, attachment.settings);
        vm_now().live = {{attachment.vf_pci, hostdev_alias(attachment.id)}};
        desired.pfs[pf_address].spec = {PfMode::manage, 4, {}};
    }
    void keep() { desired.attachments[attachment.id] = attachment; }
    VfState& vf_now() { return view.kernel.pfs.at(pf_address).vfs.at(2); }
    VmInfo& vm_now() { return view.hypervisor.vms.at(vm1_uuid); }
    [[nodiscard]] std::vector<std::string> told() const {
        std::vector<std::string> sentences;
        for (auto const& drift : find_drift(view, desired)) sentences.push_back(drift.sentence);
        return sentences;
    }
    void expect_told(std::vector<std::string> const& sentences) const {
        EXPECT_EQ(told(), sentences);
    }
};

TEST_F(DriftTest, IsNothingWhereAllIsAsWanted) {
    EXPECT_THAT(told(), IsEmpty());
}

TEST_F(DriftTest, OfEachSettingIsNamedWithTheVm) {
    vf_now().settings.mac = mac(9);
    vf_now().settings.vlan = Vlan{};
    vf_now().settings.trust = false;
    expect_told(
        {"VF 2, attached to VM vm1, has mac 02:00:00:00:00:09 instead of mac 02:00:00:00:00:02",
         "VF 2, attached to VM vm1, has vlan 0 qos 0 802.1q instead of vlan 100 qos 0 802.1q",
         "VF 2, attached to VM vm1, has trust off instead of trust on"});
    auto const all = find_drift(view, desired);
    EXPECT_EQ(all[0].attachment, attachment.id);
    EXPECT_EQ(all[0].vm, "vm1");
    EXPECT_EQ(all[0].what, "mac");
    EXPECT_FALSE(is_loss(all[0]));
}

TEST_F(DriftTest, IsNotWhatTheDriverDoesNotReportOrMayRefuse) {
    vf_now().settings.mac.reset();
    vf_now().settings.trust = false;
    attachment.spec.best_effort = {"trust"};
    keep();
    EXPECT_THAT(told(), IsEmpty());
}

TEST_F(DriftTest, OfAVfThatIsGoneIsALossOfAVmThatRuns) {
    auto& pf = view.kernel.pfs.at(pf_address);
    pf.vfs.clear();
    auto const all = find_drift(view, desired);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].sentence, "enp1s0 has 0 VFs, 4 are configured");
    EXPECT_FALSE(is_loss(all[0]));
    EXPECT_EQ(all[1].sentence, "VF 2, attached to VM vm1, is gone from that VM, which is running");
    EXPECT_TRUE(is_loss(all[1]));
    vm_now().state = VmState::shut_off;
    EXPECT_EQ(find_drift(view, desired)[1].sentence, "VF 2, attached to VM vm1, is gone");
    EXPECT_FALSE(is_loss(find_drift(view, desired)[1]));
}

TEST_F(DriftTest, OfAVfThatIsElsewhereOrUnbound) {
    vf_now().pci.function = 7;
    vf_now().driver.reset();
    expect_told({"VF 2, attached to VM vm1, moved from 0000:01:10.2 to 0000:01:10.7",
                 "VF 2, attached to VM vm1, is unbound instead of vfio-pci"});
}

TEST_F(DriftTest, OfAVmThatRunsWithoutItsVfIsALoss) {
    vm_now().live.clear();
    auto const all = find_drift(view, desired);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].sentence, "VF 2, attached to VM vm1, is not in that VM, which is running");
    EXPECT_TRUE(is_loss(all[0]));
    vm_now().state = VmState::shut_off;
    EXPECT_THAT(told(), IsEmpty()) << "it has it in its XML";
    vm_now().state = VmState::running;
    view.hypervisor.stale = true;
    EXPECT_THAT(told(), IsEmpty()) << "nobody knows";
    view.hypervisor.stale = false;
    view.hypervisor.vms.clear();
    EXPECT_THAT(told(), IsEmpty()) << "an undefined VM has lost nothing";
}

// The listener came after the VF was attached: the plan would have refused.
TEST_F(DriftTest, OfAListenerOfRdmaCmThatTheVmReaches) {
    auto& pf = view.kernel.pfs.at(pf_address);
    pf.info.rdma_device = "rxe0";
    pf.listeners = {{812, "rping", std::nullopt, 7174}};
    desired.networks["train"] = {train()};
    EXPECT_THAT(told(), IsEmpty()) << "no attachment is in it";
    attachment.spec.network = "train";
    keep();
    expect_told(
        {"rping (pid 812) listens with RDMA CM on every address of rxe0, port 7174, where VMs on "
         "network train reach it: stop it, or have it listen elsewhere"});
    pf.listeners = {{812, "vfmgrd", train().pfs[0].host_address, 7174}};
    EXPECT_THAT(told(), IsEmpty()) << "the responder's";
}

TEST_F(DriftTest, OfVfsThatNobodyHasIsTheirDriver) {
    desired.pfs[pf_address].spec.vf_driver = "vfio-pci";
    for (auto& one : view.kernel.pfs.at(pf_address).vfs) one.driver = "vfio-pci";
    EXPECT_THAT(told(), IsEmpty());
    view.kernel.pfs.at(pf_address).vfs.at(3).driver = "igbvf";
    expect_told({"VF 3 is bound to igbvf instead of vfio-pci"});
}

TEST_F(DriftTest, IsNotOfAPfThatIsOnlyObservedOrCantBeRead) {
    view.kernel.pfs.at(pf_address).vfs.clear();
    desired.pfs[pf_address].spec.mode = PfMode::observe;
    EXPECT_THAT(told(), IsEmpty());
    desired.pfs[pf_address].spec.mode = PfMode::enforce;
    EXPECT_FALSE(told().empty());
    view.kernel.pfs.at(pf_address).stale = true;
    EXPECT_THAT(told(), IsEmpty());
    view.kernel.pfs.at(pf_address).stale = false;
    view.kernel.pfs.at(pf_address).stuck = "a removal hangs";
    EXPECT_THAT(told(), IsEmpty());
}

TEST_F(DriftTest, IsNotOfAnAttachmentThatBeginsOrEnds) {
    vf_now().driver.reset();
    for (auto const state : {AttachmentState::attaching, AttachmentState::detaching}) {
        attachment.state = state;
        keep();
        EXPECT_THAT(told(), IsEmpty());
    }
}

TEST(Drift, IsToldWithWhoMayHaveDoneIt) {
    Drift drift;
    drift.what = "num_vfs";
    drift.sentence = "2 are configured";
    EXPECT_EQ(with_owners(drift, {}), "2 are configured");
    EXPECT_EQ(with_owners(drift, {"a makes 3", "b makes 4"}),
              "2 are configured; a makes 3; b makes 4");
    EXPECT_EQ(with_owners(drift, {"a", "b", "c", "d", "e"}),
              "2 are configured; a; b; c; and 2 others (see vfctl doctor)");
}

}  // namespace
}  // namespace vfmgr
