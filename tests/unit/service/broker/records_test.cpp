// SPDX-License-Identifier: Apache-2.0
// The broker's memory of VFs: baselines, who had a VF last, and whether it was reset since.
#include "service/broker/records.hpp"

#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr::broker {
namespace {

PciAddress const recorded_pf{0, 1, 0, 0};
VfId const recorded_vf{recorded_pf, 3};

AttachHostdev attach_to(std::string vm) {
    return {std::move(vm), "00000001", recorded_vf, {0, 1, 16, 6}, {}, true, true, "vm"};
}

HostView host_with_trust(bool trust) {
    HostView host;
    auto& vf = host.kernel.pfs[recorded_pf].vfs.emplace_back();
    vf.index = recorded_vf.index;
    vf.settings.trust = trust;
    return host;
}

ConfigureVfs trust_on() {
    VfSpec settings;
    settings.trust = true;
    return {recorded_pf, {{recorded_vf.index, settings}}, {}};
}

TEST(Records, HaveTheBaselineFromBeforeTheFirstChange) {
    EXPECT_TRUE(touches_unrecorded({}, trust_on()));
    auto const first = recorded_before({}, host_with_trust(false), trust_on());
    EXPECT_FALSE(touches_unrecorded(first, trust_on()));
    EXPECT_EQ(first.at(recorded_vf).baseline.trust, false);
    auto const later = recorded_before(first, host_with_trust(true), trust_on());
    EXPECT_EQ(later, first);
}

TEST(Records, EachStepThatTouchesAVfIsKnown) {
    for (Step const& step :
         {Step(trust_on()), Step(BindVfs{recorded_pf, {3}, "vfio-pci"}), Step(ResetVf{recorded_vf}),
          Step(attach_to("a")), Step(AttachExternal{recorded_vf, "qm-104", {}})})
        EXPECT_TRUE(touches_unrecorded({}, step)) << sentence(step);
    EXPECT_FALSE(touches_unrecorded({}, SetNumVfs{recorded_pf, 7}));
    EXPECT_FALSE(touches_unrecorded({}, SetLink{{recorded_pf, {}}, true, 1500}));
}

// What it has by now, somebody else set.
TEST(Records, AnAdoptedVfIsItsVmsWithTheBaselineOfANewOne) {
    PciAddress const pci{0, 1, 16, 6};
    MarkHostdev const mark{"a", "00000001", recorded_vf, pci, true, {}, false, "vm"};
    EXPECT_FALSE(touches_unrecorded({}, mark));
    auto const began = recorded_before({}, host_with_trust(true), mark);
    auto const& record = began.at(recorded_vf);
    EXPECT_EQ(record.vm_uuid, "a");
    EXPECT_EQ(record.pci, pci);
    EXPECT_FALSE(record.clean);
    EXPECT_EQ(record.baseline.trust, false);
    EXPECT_FALSE(record.driver);
    auto const known = recorded_before({}, host_with_trust(true), trust_on());
    EXPECT_EQ(recorded_before(known, {}, mark).at(recorded_vf).baseline,
              known.at(recorded_vf).baseline);
}

TEST(Records, AVfIsCleanAgainOnceItWasReset) {
    auto const had = recorded_before({}, host_with_trust(false), attach_to("a"));
    EXPECT_EQ(had.at(recorded_vf).vm_uuid, "a");
    EXPECT_FALSE(had.at(recorded_vf).clean);
    auto const began = recorded_before(had, {}, ResetVf{recorded_vf});
    EXPECT_FALSE(began.at(recorded_vf).clean) << "not before it is done";
    EXPECT_TRUE(recorded_after(began, began, ResetVf{recorded_vf}).at(recorded_vf).clean);
}

TEST(Records, AResetDoesNotCleanAVfThatAVmGotMeanwhile) {
    auto const began = recorded_before({}, host_with_trust(false), ResetVf{recorded_vf});
    auto const meanwhile = recorded_before(began, {}, attach_to("a"));
    EXPECT_FALSE(recorded_after(meanwhile, began, ResetVf{recorded_vf}).at(recorded_vf).clean);
}

TEST(Records, RememberWhomTheNodesWereTakenFrom) {
    auto host = host_with_trust(false);
    auto& vfio = host.kernel.pfs.at(recorded_pf).vfs.front().vfio;
    vfio = VfioPaths{"/dev/vfio/1", {}, 107};
    AttachExternal const attach{recorded_vf, "qm-104", 64055};
    auto const began = recorded_before({}, host, attach);
    EXPECT_EQ(began.at(recorded_vf).vm_uuid, "external:qm-104");
    EXPECT_FALSE(began.at(recorded_vf).clean);
    EXPECT_EQ(began.at(recorded_vf).node_owner, 107U);
    EXPECT_EQ(parse_records(to_text(began)).value().at(recorded_vf).node_owner, 107U);
    vfio->owner = 64055;
    EXPECT_EQ(recorded_before(began, host, attach).at(recorded_vf).node_owner, 107U)
        << "what it has already is its own";
    vfio->owner = 0;
    AttachExternal const other{recorded_vf, "qm-105", 64055};
    auto const next = recorded_before(began, host, other);
    EXPECT_EQ(next.at(recorded_vf).node_owner, std::nullopt);
    EXPECT_EQ(to_text(next).find("node_owner"), std::string::npos)
        << "an earlier broker can read it";
}

// No XML says at the next boot that the holder has it.
TEST(Records, OfAnExternalHolderStayWhenVfsAreMadeAnew) {
    AttachExternal const attach{recorded_vf, "qm-104", {}};
    auto records = recorded_before({}, host_with_trust(false), attach);
    auto const after = recorded_after(records, records, SetNumVfs{recorded_pf, 4});
    EXPECT_TRUE(has_had(after, attach));
    EXPECT_FALSE(has_had(after, {recorded_vf, "qm-105", {}}));
    records.at(recorded_vf).clean = true;
    EXPECT_FALSE(recorded_after(records, records, SetNumVfs{recorded_pf, 4}).contains(recorded_vf));
}

TEST(Records, VfsThatAreMadeAnewHaveNone) {
    auto records = recorded_before({}, host_with_trust(false), attach_to("a"));
    VfId const other{{0, 2, 0, 0}, 0};
    records[other] = {};
    auto const after = recorded_after(records, records, SetNumVfs{recorded_pf, 4});
    EXPECT_FALSE(after.contains(recorded_vf));
    EXPECT_TRUE(after.contains(other));
}

HostView host_with_attached(std::string const& uuid, std::string alias) {
    auto host = host_with_trust(true);
    host.kernel.pfs.at(recorded_pf).vfs.front().pci = attach_to(uuid).pci;
    auto& vm = host.hypervisor.vms[uuid];
    vm.uuid = uuid;
    vm.config.push_back({attach_to(uuid).pci, std::move(alias)});
    return host;
}

TEST(Records, TakeInWhatAVersionWithoutABrokerHasAttached) {
    auto const host = host_with_attached("a", "ua-vfmgr-00000001");
    auto const record = with_attached({}, {}, host).at(recorded_vf);
    EXPECT_EQ(record.vm_uuid, "a");
    EXPECT_FALSE(record.clean);
    EXPECT_EQ(record.baseline.trust, false) << "the VM's setting is no baseline";
    EXPECT_EQ(record.baseline.vlan, Vlan{});
    EXPECT_TRUE(has_unrecorded(host.hypervisor, {}));
    EXPECT_FALSE(has_unrecorded(host.hypervisor, with_attached({}, {}, host)));
}

TEST(Records, TakeInWhatAVmHasSinceABootAndKeepTheBaseline) {
    auto const restored = recorded_before({}, host_with_trust(false), trust_on());
    ASSERT_TRUE(restored.at(recorded_vf).clean);
    auto const host = host_with_attached("a", "ua-vfmgr-00000001");
    auto const record = with_attached(restored, restored, host).at(recorded_vf);
    EXPECT_EQ(record.vm_uuid, "a");
    EXPECT_FALSE(record.clean);
    EXPECT_EQ(record.baseline, restored.at(recorded_vf).baseline);
}

TEST(Records, TakeTheVmThatRunsWithAVf) {
    auto host = host_with_attached("b", "ua-vfmgr-00000001");
    auto& running = host.hypervisor.vms["a"];
    running.live.push_back({attach_to("a").pci, "ua-vfmgr-00000002"});
    EXPECT_EQ(with_attached({}, {}, host).at(recorded_vf).vm_uuid, "a");
}

TEST(Records, TakeInNothingOfOthersAndNothingOlder) {
    EXPECT_TRUE(with_attached({}, {}, host_with_attached("a", "hostdev0")).empty());
    auto const host = host_with_attached("a", "ua-vfmgr-00000001");
    auto const had = recorded_before({}, host, attach_to("a"));
    auto const meanwhile = recorded_after(had, had, ResetVf{recorded_vf});
    EXPECT_EQ(with_attached(meanwhile, had, host), meanwhile) << "reset after it was observed";
    EXPECT_FALSE(has_unrecorded(host.hypervisor, had)) << "by a step of its own";
    EXPECT_TRUE(has_unrecorded(host.hypervisor, meanwhile));
}

TEST(Records, OutliveTheBrokerAsText) {
    auto records = recorded_before({}, host_with_trust(true), attach_to("a"));
    records[{recorded_pf, 4}].baseline.mac = MacAddress::parse("00:00:00:00:00:00").value();
    auto const again = parse_records(to_text(records));
    ASSERT_TRUE(again) << again.error().detail;
    records.at(recorded_vf).attachments = 0;  // of this life alone
    EXPECT_EQ(*again, records);
    for (auto const* const text : {"", "{}", "{\"vfs\": [{}]}", "[]"})
        EXPECT_FALSE(parse_records(text)) << text;
}

}  // namespace
}  // namespace vfmgr::broker
