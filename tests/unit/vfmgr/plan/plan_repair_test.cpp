// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"
#include "vfmgr/plan/drift.hpp"
#include "vfmgr/plan/links.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// VF 2 is attached to vm1, and everything is as desired, in mode enforce.
struct PlanRepairTest : testing::Test {
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
        attachment.live = attachment.config = true;
        attachment.settings.mac = mac(2);
        attachment.settings.trust = true;
        keep();
        vf_now().driver = "vfio-pci";
        vf_now().settings = overlay(vf_now().settings, attachment.settings);
        vf_now().holders = {{812, "qemu-system-x86"}};
        vm_now().live = vm_now().config = {{attachment.vf_pci, hostdev_alias(attachment.id)}};
        desired.pfs[pf_address] = {{PfMode::enforce, 4, {}}, 1, base_of(pf_now())};
        pf_now().info.up = true;
        pf_now().interfaces[0].up = true;
    }
    void keep() { desired.attachments[attachment.id] = attachment; }
    PfState& pf_now() { return view.kernel.pfs.at(pf_address); }
    VfState& vf_now() { return pf_now().vfs.at(2); }
    VmInfo& vm_now() { return view.hypervisor.vms.at(vm1_uuid); }
    PfSpec& spec() { return desired.pfs.at(pf_address).spec; }
    // An admin wrote sriov_numvfs: QEMU and the XML of the running VM have lost the VF.
    void steal(std::uint16_t left) {
        pf_now() = pf(left);
        pf_now().info.up = pf_now().interfaces[0].up = true;
        vm_now().live.clear();
    }
    [[nodiscard]] std::vector<Step> steps() const {
        auto const plan = plan_repair(view, desired, pf_address);
        EXPECT_TRUE(plan) << plan.error().detail;
        return plan ? plan->steps : std::vector<Step>();
    }
    [[nodiscard]] Error refusal() const {
        auto const plan = plan_repair(view, desired, pf_address);
        EXPECT_FALSE(plan);
        return plan ? Error{} : plan.error();
    }
    [[nodiscard]] VfChange change(VfSpec const& settings) const {
        return {attachment.vf.index, settings};
    }
};

// The attachment is in network plain, on the PF's own netdev, which has a hole each.
TEST_F(PlanRepairTest, ClosesTheHostInEveryModeAndDoesNothingElse) {
    attachment.spec.network = "plain";
    attachment.address = ip("192.168.50.7");
    keep();
    desired.networks["plain"] = {plain()};
    desired.pfs.at(pf_address).spec.mode = PfMode::manage;
    InterfaceId const interface{pf_address, {}};
    auto& is = pf_now().interfaces[0];
    is.addresses = is.filtered = {ip("192.168.50.1")};
    is.peers = {{ip("192.168.50.7"), mac(2)}};
    is.closed = {{ip("192.168.50.7"), mac(2), ip("192.168.50.1")}};
    vf_now().settings.trust = false;
    auto const steps = [&] { return plan_closing(view, desired, pf_address)->steps; };
    AddPeer const peer{interface, ip("192.168.50.7"), mac(2), ip("192.168.50.1")};
    EXPECT_THAT(steps(), IsEmpty()) << "all is closed; the rest is not its own to repair";
    is.closed.clear();
    EXPECT_THAT(steps(), ElementsAre(Step{peer}));
    is.closed = {{ip("192.168.50.7"), mac(9), ip("192.168.50.1")}};
    EXPECT_THAT(steps(), ElementsAre(Step{peer})) << "for another MAC";
    is.closed = {{ip("192.168.50.7"), mac(2), ip("10.1.2.3")}};
    EXPECT_THAT(steps(), ElementsAre(Step{peer})) << "but for another address of the host";
    is.filtered.clear();
    EXPECT_THAT(steps(), ElementsAre(Step{AddAddress{interface, ip("192.168.50.1")}}, Step{peer}));
    attachment.state = AttachmentState::detaching;
    keep();
    EXPECT_THAT(steps(), IsEmpty());
    attachment.state = AttachmentState::attaching;  // its VM has not proved RDMA yet
    keep();
    EXPECT_EQ(steps().size(), 2U);
    is.addresses.clear();
    EXPECT_THAT(steps(), IsEmpty()) << "there is nothing to close yet";
}

TEST_F(PlanRepairTest, DoesNothingWhereAllIsAsWanted) {
    EXPECT_THAT(steps(), IsEmpty());
    EXPECT_THAT(find_drift(view, desired), IsEmpty());
}

TEST_F(PlanRepairTest, IsOfModeEnforceAlone) {
    steal(0);
    spec().mode = PfMode::manage;
    EXPECT_THAT(steps(), IsEmpty());
    spec().mode = PfMode::observe;
    EXPECT_THAT(steps(), IsEmpty());
    spec().mode = PfMode::enforce;
    EXPECT_FALSE(steps().empty());
}

TEST_F(PlanRepairTest, MakesStolenVfsAgainAsTheyWere) {
    steal(0);
    EXPECT_THAT(steps(),
                ElementsAre(Step(SetNumVfs{pf_address, 4}),
                            Step(ConfigureVfs{pf_address, {change(attachment.settings)}, {}}),
                            Step(BindVfs{pf_address, {2}, "vfio-pci"})));
}

TEST_F(PlanRepairTest, GivesTheOthersTheirDriver) {
    spec().vf_driver = "igbvf";
    steal(1);
    auto const all = steps();
    EXPECT_EQ(all.back(), Step(BindVfs{pf_address, {0, 1, 3}, "igbvf"}));
}

TEST_F(PlanRepairTest, BringsThePfUpBeforeItMakesVfs) {
    steal(0);
    pf_now().info.up = pf_now().interfaces[0].up = false;
    auto const all = steps();
    EXPECT_EQ(all[0], Step(SetLink{{pf_address, {}}, true, 1500}));
    EXPECT_EQ(all[1], Step(SetNumVfs{pf_address, 4}));
    EXPECT_EQ(all.size(), 4U) << "and once is enough";
}

// One VF was removed by its own "remove": the count that the PF reports is still right.
TEST_F(PlanRepairTest, GoesThroughNoneWhereTheCountIsRight) {
    steal(4);
    pf_now().vfs.pop_back();
    auto const all = steps();
    EXPECT_EQ(all[0], Step(SetNumVfs{pf_address, 0}));
    EXPECT_EQ(all[1], Step(SetNumVfs{pf_address, 4}));
}

TEST_F(PlanRepairTest, TakesNoVfFromWhoHasIt) {
    steal(2);
    view.hypervisor.vms.at(vm2_uuid).live = {{vf(1).pci, "hostdev0"}};
    EXPECT_EQ(refusal().problem, Problem::vf_in_use);
    EXPECT_EQ(
        refusal().detail,
        "enp1s0 has 2 VFs, and changing that to 4 would recreate them all, but VF 1 is in the "
        "running VM vm2");
    view.hypervisor.vms.at(vm2_uuid).live.clear();
    view.hypervisor.vms.at(vm2_uuid).config = {{vf(1).pci, "hostdev0"}};
    EXPECT_THAT(refusal().detail, HasSubstr("persistent configuration of VM vm2"));
    view.hypervisor.vms.at(vm2_uuid).config.clear();
    pf_now().vfs[0].holders = {{7, "dpdk"}};
    EXPECT_THAT(refusal().detail, HasSubstr("VF 0 is held open by dpdk (pid 7)"));
    pf_now().vfs[0].holders.clear();
    view.hypervisor.stale = true;
    EXPECT_EQ(refusal().problem, Problem::unavailable);
    view.hypervisor.stale = false;
    EXPECT_FALSE(steps().empty()) << "the attachment's own XML is no reason";
}

// A VF count that can't be reached keeps neither existing VFs from their VMs, nor the host's
// interface from being repaired.
TEST_F(PlanRepairTest, RepairsPresentVfsWhenNoMoreCanBeMade) {
    steal(3);
    view.hypervisor.vms.at(vm2_uuid).live = {{vf(1).pci, "hostdev0"}};
    auto const plan = plan_repair(view, desired, pf_address).value();
    EXPECT_THAT(plan.steps,
                ElementsAre(Step(ConfigureVfs{pf_address, {change(attachment.settings)}, {}}),
                            Step(BindVfs{pf_address, {2}, "vfio-pci"})));
    EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("VF 1 is in the running VM vm2: free them")));
}

TEST_F(PlanRepairTest, WaitsForAPfThatKeepsAllOut) {
    steal(0);
    PciAddress const other{0, 2, 0, 0};
    view.kernel.pfs[other] = pf(0);
    view.kernel.pfs[other].stuck = "it hangs";
    view.kernel.pfs[other].pci_busy = true;
    EXPECT_EQ(refusal().problem, Problem::pci_busy);
}

TEST_F(PlanRepairTest, CantKnowANumberThatNobodySaid) {
    steal(0);
    spec().num_vfs.reset();
    EXPECT_THAT(refusal().detail, HasSubstr("their number was never configured"));
}

TEST_F(PlanRepairTest, SetsWhatDiffersInARunningVm) {
    vf_now().settings.trust = false;
    vf_now().settings.link_state.reset();
    VfSpec trust;
    trust.trust = true;
    EXPECT_THAT(steps(), ElementsAre(Step(ConfigureVfs{pf_address, {change(trust)}, {}})));
    attachment.spec.best_effort = {"trust"};
    keep();
    EXPECT_THAT(steps(), IsEmpty()) << "the driver may have refused it";
}

TEST_F(PlanRepairTest, GivesAAttachedVfItsDriverWithEverySetting) {
    vm_now().live.clear();
    vf_now().holders.clear();
    vf_now().driver = "igbvf";
    vf_now().settings.mac.reset();
    VfSpec mac_only;
    mac_only.mac = mac(2);
    EXPECT_THAT(steps(), ElementsAre(Step(BindVfs{pf_address, {2}, {}}),
                                     Step(ConfigureVfs{pf_address, {change(mac_only)}, {}}),
                                     Step(BindVfs{pf_address, {2}, "vfio-pci"})));
    vf_now().holders = {{9, "testpmd"}};
    EXPECT_EQ(refusal().detail,
              "VF 0000:01:00.0/2, attached to VM vm1, is held open by testpmd (pid 9)");
}

TEST_F(PlanRepairTest, OneThatCantBeHelpedKeepsNoOtherBack) {
    vf_now().driver = "igbvf";
    auto other = attachment;
    other.id = "11112222";
    other.vf.index = 3;
    other.vf_pci = vf(3).pci;
    desired.attachments[other.id] = other;
    pf_now().vfs[3].settings = overlay(vf(3).settings, attachment.settings);
    auto const plan = plan_repair(view, desired, pf_address).value();
    EXPECT_THAT(plan.steps, ElementsAre(Step(BindVfs{pf_address, {3}, "vfio-pci"})));
    EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("held open by qemu-system-x86")));
}

TEST_F(PlanRepairTest, PutsTheHostsInterfaceBack) {
    desired.networks["train"] = {train()};
    attachment.spec.network = "train";
    attachment.address = ip("192.168.100.17");
    keep();
    auto const all = steps();
    EXPECT_EQ(all.size(), find_drift(view, desired).size()) << "each is drift, and is told";
    EXPECT_EQ(std::ranges::count_if(
                  all, [](Step const& step) { return as<AddVlanInterface>(step) != nullptr; }),
              1);
    EXPECT_THAT(find_drift(view, desired)[0].sentence,
                HasSubstr("enp1s0 is not set up as its attachments need it; still to do: "));
}

TEST_F(PlanRepairTest, PlugsTheVfIntoItsVmAgain) {
    vm_now().live.clear();
    EXPECT_FALSE(plan_return(view, attachment)) << "somebody holds it open";
    vf_now().holders.clear();
    EXPECT_THAT(plan_return(view, attachment).value().steps,
                ElementsAre(Step(AttachHostdev{vm1_uuid, attachment.id, attachment.vf,
                                               attachment.vf_pci, mac(2), true, false, "vm1"})));
    vm_now().config.clear();
    auto const both = plan_return(view, attachment).value().steps;
    EXPECT_TRUE(as<AttachHostdev>(both.at(0))->config);
    vm_now().free_pcie_ports = 0;
    EXPECT_THAT(plan_return(view, attachment).error().detail, HasSubstr("no free PCIe port"));
}

TEST_F(PlanRepairTest, WaitsForTheVfAndItsDriver) {
    vm_now().live.clear();
    vf_now().holders.clear();
    vf_now().driver.reset();
    EXPECT_THAT(plan_return(view, attachment).value().steps, IsEmpty());
    pf_now().vfs.clear();
    EXPECT_THAT(plan_return(view, attachment).value().steps, IsEmpty());
    view.hypervisor.vms.clear();
    EXPECT_EQ(plan_return(view, attachment).error().problem, Problem::not_found);
}

TEST_F(PlanRepairTest, AnXmlThatLostItsDeviceIsDriftAndNoTheft) {
    vm_now().config.clear();
    auto const all = find_drift(view, desired);
    ASSERT_EQ(all.size(), 1U);
    EXPECT_EQ(all[0].sentence, "VF 2, attached to VM vm1, is not in the persistent XML of that VM");
    EXPECT_FALSE(is_loss(all[0]));
    EXPECT_FALSE(as<AttachHostdev>(plan_return(view, attachment).value().steps.at(0))->live);
}

// Attached while the VM was shut off: the store must record that the VM runs with the VF now.
TEST_F(PlanRepairTest, AVmThatWasStartedWithItsVfCanLoseIt) {
    attachment.live = false;
    keep();
    EXPECT_TRUE(changed_by_vms(view, desired).at(0).live);
    vm_now().live.clear();
    EXPECT_THAT(changed_by_vms(view, desired), IsEmpty());
    EXPECT_THAT(find_drift(view, desired), IsEmpty());
}

TEST_F(PlanRepairTest, AnAttachmentFollowsItsVmsName) {
    EXPECT_THAT(changed_by_vms(view, desired), IsEmpty());
    vm_now().name = "renamed";
    EXPECT_EQ(changed_by_vms(view, desired).at(0).vm, "renamed");
}

}  // namespace
}  // namespace vfmgr
