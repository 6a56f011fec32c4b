// SPDX-License-Identifier: Apache-2.0
// Settings that a PF's spec gives VFs which no VM has.
#include "vfmgr/plan/free_vfs.hpp"

#include <gmock/gmock.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"
#include "vfmgr/plan/choose.hpp"
#include "vfmgr/plan/drift.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The spec gives VF 1 a MAC and VF 3 a VLAN; both VFs are there, and nobody has them.
struct FreeVfs : testing::Test {
    HostView view = host(4);
    DesiredState now;
    PfSpec spec{PfMode::enforce, 4};
    VfSpec with_mac, with_vlan;

    void SetUp() override {
        with_mac.mac = mac(0x51);
        with_vlan.vlan = Vlan{200, 0, VlanProtocol::dot1q};
        spec.free_vfs = {{1, with_mac}, {3, with_vlan}};
        now.pfs[pf_address].spec = spec;
    }
    VfState& vf_now(std::uint16_t index) { return view.kernel.pfs.at(pf_address).vfs.at(index); }
    void attach_vf_1() {
        Attachment attachment;
        attachment.id = "3f9c2b1d";
        attachment.vf = {pf_address, 1};
        now.attachments[attachment.id] = attachment;
    }
    [[nodiscard]] Plan planned() const { return plan_pf(view, now, pf_address, spec).value(); }
    [[nodiscard]] std::vector<Step> repair() const {
        return plan_repair(view, now, pf_address).value().steps;
    }
};

TEST_F(FreeVfs, GetWhatTheyLack) {
    Step const both = ConfigureVfs{pf_address, {{1, with_mac}, {3, with_vlan}}, {}};
    EXPECT_THAT(planned().steps, ElementsAre(both));
    EXPECT_THAT(repair(), ElementsAre(both));
    vf_now(1).settings.mac = with_mac.mac;
    EXPECT_THAT(planned().steps, ElementsAre(Step(ConfigureVfs{pf_address, {{3, with_vlan}}, {}})));
    vf_now(3).settings.vlan = with_vlan.vlan;
    EXPECT_THAT(planned().steps, IsEmpty());
    EXPECT_THAT(find_drift(view, now), IsEmpty());
}

TEST_F(FreeVfs, AreConfiguredAsTheyAreMadeBeforeADriverReadsThem) {
    view = host(0);
    spec.vf_driver = "vfio-pci";
    EXPECT_THAT(planned().steps,
                ElementsAre(Step(SetNumVfs{pf_address, 4}),
                            Step(ConfigureVfs{pf_address, {{1, with_mac}, {3, with_vlan}}, {}}),
                            Step(BindVfs{pf_address, {0, 1, 2, 3}, "vfio-pci"})));
    now.pfs[pf_address].spec = spec;
    EXPECT_EQ(repair(), planned().steps);
}

TEST_F(FreeVfs, ThatAVmHasAreLeftToTheAttachment) {
    attach_vf_1();
    EXPECT_THAT(planned().steps, ElementsAre(Step(ConfigureVfs{pf_address, {{3, with_vlan}}, {}})));
    now.quarantine[VfId{pf_address, 3}] = {};
    EXPECT_THAT(planned().steps, IsEmpty());
    EXPECT_THAT(planned().notes, IsEmpty());
}

TEST_F(FreeVfs, ThatSomebodyElseUsesKeepWhatTheyHave) {
    vf_now(1).holders = {{812, "qemu-system-x86"}};
    auto const plan = planned();
    EXPECT_THAT(plan.steps, ElementsAre(Step(ConfigureVfs{pf_address, {{3, with_vlan}}, {}})));
    EXPECT_THAT(plan.notes, ElementsAre(HasSubstr("VF 1 keeps its settings: it is held open by")));
    view.hypervisor.stale = true;
    EXPECT_THAT(planned().steps, IsEmpty());
    EXPECT_THAT(planned().notes, ElementsAre(HasSubstr("VFs keep their settings")));
}

TEST_F(FreeVfs, ThatWereChangedHaveDrifted) {
    vf_now(1).settings.mac = with_mac.mac;
    std::vector<std::string> sentences;
    for (auto const& drift : find_drift(view, now)) sentences.push_back(drift.sentence);
    EXPECT_THAT(sentences,
                ElementsAre("VF 3, which is not attached, has vlan 0 qos 0 802.1q instead of vlan "
                            "200 qos 0 802.1q"));
}

TEST_F(FreeVfs, AreNotJudgedByWhatTheDriverDoesNotReport) {
    vf_now(1).settings.mac.reset();
    vf_now(3).settings.vlan = with_vlan.vlan;
    EXPECT_THAT(find_drift(view, now), IsEmpty());
    EXPECT_THAT(planned().steps, IsEmpty());
    EXPECT_THAT(repair(), IsEmpty());
}

TEST_F(FreeVfs, GetWhatTheDriverDoesNotReportWithTheSpecThatBringsIt) {
    vf_now(1).settings.mac.reset();
    vf_now(3).settings.vlan = with_vlan.vlan;
    Step const once = ConfigureVfs{pf_address, {{1, with_mac}}, {}};
    now.pfs[pf_address].spec.mode = PfMode::observe;
    EXPECT_THAT(planned().steps, ElementsAre(once)) << "a PF that is observed gets nothing";
    now.pfs[pf_address].spec = spec;
    spec.free_vfs.front().settings.mac = mac(0x52);
    EXPECT_THAT(
        planned().steps,
        ElementsAre(Step(ConfigureVfs{pf_address, {{1, spec.free_vfs.front().settings}}, {}})));
    now.pfs.clear();
    spec.free_vfs.front().settings = with_mac;
    EXPECT_THAT(planned().steps, ElementsAre(once)) << "a PF that nobody has managed yet";
}

TEST_F(FreeVfs, MustBeThere) {
    spec.num_vfs.reset();
    spec.free_vfs.push_back({4, with_vlan});
    auto const refused = plan_pf(view, now, pf_address, spec);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::limit_exceeded);
    EXPECT_THAT(refused.error().detail, HasSubstr("enp1s0 has 4 VFs"));
}

TEST_F(FreeVfs, HaveMacsOfTheirOwn) {
    EXPECT_FALSE(check_mac(view, now, {pf_address, 2}, vm1_uuid, *with_mac.mac))
        << "VF 1 is to have it";
    EXPECT_TRUE(check_mac(view, now, {pf_address, 1}, vm1_uuid, *with_mac.mac));
    vf_now(2).settings.mac = with_mac.mac;
    auto const refused = plan_pf(view, now, pf_address, spec);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::conflict);
}

}  // namespace
}  // namespace vfmgr
