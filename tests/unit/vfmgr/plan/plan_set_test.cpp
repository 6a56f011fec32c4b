// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;

Result<AttachmentSetPlan> plan_several(HostView const& view, DesiredState const& goal,
                                       std::vector<AttachmentSpec> const& specs) {
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < specs.size(); ++i) ids.push_back("aaaa000" + std::to_string(i + 1));
    return plan_attachments(view, goal, ids, specs, "seed");
}

HostView two_nics() {
    auto view = host();
    auto other = pf(7);
    other.info.pci = second_pf;
    other.info.ifname = "enp2s0";
    other.info.mac = other.info.identity.mac = MacAddress{{0x52, 0x54, 0, 0xaa, 0, 2}};
    other.interfaces[0].id.pf = second_pf;
    other.interfaces[0].ifname = "enp2s0";
    for (auto& one : other.vfs) {
        one.pci.bus = 2;
        *one.iommu_group += 20;
    }
    view.kernel.pfs[second_pf] = other;
    return view;
}

DesiredState on_two_nics() {
    auto state = desired();
    state.pfs[second_pf].spec.num_vfs = 7;
    state.networks["train"].network.pfs.push_back({second_pf, ip("192.168.100.4")});
    return state;
}

TEST(PlanSet, OfOneIsItsPlan) {
    auto const one = plan(host(), desired(), ask()).value();
    auto const set = plan_several(host(), desired(), {ask()}).value();
    EXPECT_EQ(set.plan, one.plan);
    EXPECT_THAT(set.attachments, ElementsAre(one.attachment));
    EXPECT_EQ(set.bases.at(pf_address), one.base);
}

TEST(PlanSet, DoesTheKernelsStepsOfAllBeforeLibvirtsFirst) {
    auto spec = ask();
    spec.verify = VerifyMode::required;
    auto view = host();
    for (auto& one : view.kernel.pfs[pf_address].vfs) one.driver = "igbvf";
    auto const set = plan_several(view, desired(), {spec, spec, spec}).value();
    std::vector<std::string_view> names;
    for (auto const& step : set.plan.steps) names.push_back(name_of(step));
    EXPECT_THAT(names, ElementsAre("set_link", "add_rdma_link", "add_vlan_interface", "set_link",
                                   "add_address", "add_peer", "add_peer", "add_peer", "bind_vfs",
                                   "configure_vfs", "bind_vfs", "attach_hostdev", "attach_hostdev",
                                   "attach_hostdev", "await_carrier", "await_verification",
                                   "await_verification", "await_verification"));
    for (auto const& bind : steps_of<BindVfs>(set.plan))
        EXPECT_THAT(bind.vfs, ElementsAre(0, 1, 2));
    EXPECT_EQ(steps_of<ConfigureVfs>(set.plan).at(0).changes.size(), 3U);
}

TEST(PlanSet, GivesEachItsOwnVfMacAndAddress) {
    auto const set = plan_several(host(), desired(), {ask(), ask(), ask()}).value();
    std::set<VfId> vfs;
    std::set<MacAddress> macs;
    std::set<IpAddress> addresses;
    for (auto const& one : set.attachments) {
        vfs.insert(one.vf);
        macs.insert(*one.settings.mac);
        addresses.insert(*one.address);
    }
    EXPECT_EQ(vfs.size(), 3U);
    EXPECT_EQ(macs.size(), 3U);
    EXPECT_EQ(addresses.size(), 3U);
}

TEST(PlanSet, KeepsApartWhatADriverMayRefuse) {
    auto lenient = ask();
    lenient.settings.trust = true;
    lenient.best_effort = {"trust"};
    auto const set = plan_several(host(), desired(), {ask(), lenient, ask()}).value();
    auto const configures = steps_of<ConfigureVfs>(set.plan);
    ASSERT_EQ(configures.size(), 2U);
    EXPECT_EQ(configures[0].changes.size(), 2U);
    EXPECT_THAT(configures[0].best_effort, testing::IsEmpty());
    EXPECT_THAT(configures[1].best_effort, ElementsAre("trust"));
}

TEST(PlanSet, SpreadsOverPfsAndWaitsForTheCarrierOfEach) {
    auto first = ask();
    auto second = ask();
    second.pf = second_pf;
    second.settings.max_tx_rate_mbps = 1000;
    auto const set = plan_several(two_nics(), on_two_nics(), {first, second}).value();
    EXPECT_EQ(set.bases.size(), 2U);
    auto const waits = steps_of<AwaitCarrier>(set.plan);
    ASSERT_EQ(waits.size(), 2U);
    // A rate needs the carrier; the other PF's is waited for when its VM has the VF.
    auto const& steps = set.plan.steps;
    auto const at = [&](Step const& step) {
        return std::ranges::find(steps, step) - steps.begin();
    };
    EXPECT_LT(at(AwaitCarrier{{second_pf, {}}}), at(steps_of<ConfigureVfs>(set.plan).at(1)));
    EXPECT_GT(at(AwaitCarrier{{pf_address, {}}}), at(steps_of<AttachHostdev>(set.plan).at(1)));
}

TEST(PlanSet, RefusesAllForOneAndNamesIt) {
    auto wrong = ask();
    wrong.vf = 9;
    auto const refused = plan_several(host(), desired(), {ask(), wrong}).error();
    EXPECT_THAT(refused.detail, HasSubstr("attachment 2 of 2: "));
    auto same = ask();
    same.vf = 3;
    EXPECT_THAT(plan_several(host(), desired(), {same, same}).error().detail,
                HasSubstr("attachment 2 of 2: "));
}

TEST(PlanSet, CountsTheVmsPortsAndThePfsVfs) {
    auto view = host();
    view.hypervisor.vms[vm1_uuid].free_pcie_ports = 2;
    EXPECT_TRUE(plan_several(view, desired(), {ask(), ask()}));
    auto const refused = plan_several(view, desired(), {ask(), ask(), ask()}).error();
    EXPECT_THAT(refused.detail, HasSubstr("attachment 3 of 3: VM vm1 has no free PCIe port"));
    view.hypervisor.vms[vm1_uuid].free_pcie_ports = 32;
    EXPECT_TRUE(plan_several(view, desired(), std::vector(7, ask())));
    EXPECT_THAT(plan_several(view, desired(), std::vector(8, ask())).error().detail,
                HasSubstr("attachment 8 of 8: "));
}

TEST(PlanSet, IsOfOneVm) {
    auto const refused = plan_several(host(), desired(), {ask("vm1"), ask("vm2")}).error();
    EXPECT_EQ(refused.problem, Problem::invalid_request);
    EXPECT_THAT(refused.detail, HasSubstr("names vm1 and vm2"));
}

}  // namespace
}  // namespace vfmgr
