// SPDX-License-Identifier: Apache-2.0
// What a front that was taken over may ask, and does not get.
#include "service/broker/admit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfmgr::broker {
namespace {

using testing::HasSubstr;

PciAddress const asked_pf{0, 1, 0, 0};
VfId const asked_vf{asked_pf, 3};
PciAddress const asked_pci{0, 1, 16, 6};
PciAddress const disk{0, 5, 0, 0};

HostView asked_host() {
    HostView host;
    auto& vf = host.kernel.pfs[asked_pf].vfs.emplace_back();
    vf.index = asked_vf.index;
    vf.pci = asked_pci;
    vf.settings.trust = false;
    return host;
}

void add_vm(HostView& host, std::string const& uuid, bool live) {
    auto& vm = host.hypervisor.vms[uuid];
    vm.uuid = uuid;
    vm.name = "name-of-" + uuid;
    (live ? vm.live : vm.config).push_back({asked_pci, {}});
}

AttachHostdev attach_device(std::string vm = "a", PciAddress pci = asked_pci) {
    return {std::move(vm), "00000001", asked_vf, pci, {}, true, true, "vm"};
}

std::string refusal(Step const& step, HostView const& host = asked_host(),
                    Records const& records = {}, HostRules const& rules = {}) {
    auto const admitted = admit(rules, records, host, step);
    if (admitted) return {};
    EXPECT_FALSE(admitted.error().remedy.empty());
    return admitted.error().detail;
}

TEST(Admit, WhatAHealthyFrontAsksFor) {
    for (Step const& step :
         {Step(SetNumVfs{asked_pf, 1}), Step(BindVfs{asked_pf, {3}, "mlx5_vfio_pci"}),
          Step(BindVfs{asked_pf, {3}, {}}), Step(ResetVf{asked_vf}), Step(attach_device()),
          Step(DetachHostdev{"a", "00000001", asked_vf, asked_pci, true, true, "vm"}),
          Step(RemoveSoftRdmaLink{"rxe0", true})})
        EXPECT_EQ(refusal(step), "") << sentence(step);
}

TEST(Admit, NoDriverThatIsAPath) {
    for (auto const* const driver : {"", "../../devices", "vfio-pci\n", "a/b", ".", "vfio pci"})
        EXPECT_THAT(refusal(BindVfs{asked_pf, {3}, driver}), HasSubstr("is no name of a driver"))
            << driver;
    EXPECT_NE(refusal(BindVfs{asked_pf, {3}, std::string(65, 'a')}), "");
}

TEST(Admit, NoIdThatIsXml) {
    auto attach = attach_device();
    attach.attachment = "'/><disk type='file'>";
    EXPECT_THAT(refusal(attach), HasSubstr("is no id of an attachment"));
    EXPECT_THAT(refusal(DetachHostdev{"a", "../x", asked_vf, asked_pci, true, true, "vm"}),
                HasSubstr("is no id of an attachment"));
}

MarkHostdev mark_device(std::string vm = "a", PciAddress pci = asked_pci) {
    return {std::move(vm), "00000001", asked_vf, pci, true, "ua-vfmgr-00000001", false, "vm"};
}

TEST(Admit, TheNameOfAVfThatItsVmHasAlone) {
    auto host = asked_host();
    EXPECT_THAT(refusal(mark_device(), host), HasSubstr("VM a has no VF at 0000:01:10.6"));
    add_vm(host, "a", true);
    EXPECT_EQ(refusal(mark_device(), host), "");
    EXPECT_THAT(refusal(mark_device("a", disk), host), HasSubstr("has no VF at 0000:05:00.0"));
    host.hypervisor.vms.at("a").live.push_back({disk, {}});
    EXPECT_THAT(refusal(mark_device("a", disk), host), HasSubstr("is not at 0000:05:00.0"));
    HostRules rules;
    rules.bounds.default_pf.spoofchk_off = false;
    host.kernel.pfs.at(asked_pf).vfs.front().settings.spoofchk = false;
    EXPECT_THAT(refusal(mark_device(), host, {}, rules), HasSubstr("spoofchk off is not allowed"));
    add_vm(host, "b", false);
    EXPECT_THAT(refusal(mark_device(), host), HasSubstr("is in the XML of VM name-of-b"));
}

TEST(Admit, NoUnplugByAddressOfWhatIsNotTheVmsFromVfmgr) {
    DetachHostdev step{"a", "00000001", asked_vf, asked_pci, true, true, "vm", true};
    Records records;
    EXPECT_THAT(refusal(step, {}, records), HasSubstr("VM a has no VF at"));
    records[asked_vf] = {{}, {}, "a", false, {}, asked_pci};
    EXPECT_EQ(refusal(step, {}, records), "");
    step.pci = disk;
    EXPECT_NE(refusal(step, {}, records), "");
    step.pci = asked_pci;
    step.vm_uuid = "b";
    EXPECT_NE(refusal(step, {}, records), "");
    step.by_address.reset();
    EXPECT_EQ(refusal(step, {}, records), "") << "by our alias";
}

TEST(Admit, NoLinkThatIsAPathAndNoneOnAnUntrustedNetdev) {
    HostRules rules;
    rules.trusted_netdevs = {"bond0"};
    auto const add = [&](std::string name, std::string ifname) {
        return refusal(AddSoftRdmaLink{{std::move(name), SoftRdmaType::rxe, std::move(ifname)}}, {},
                       {}, rules);
    };
    EXPECT_EQ(add("rxe0", "bond0"), "");
    EXPECT_THAT(add("../rxe0", "bond0"), HasSubstr("is no name of an RDMA link"));
    EXPECT_THAT(add("rxe0", "a/b"), HasSubstr("is no netdev's name"));
    EXPECT_THAT(add("rxe0", "eth0"), HasSubstr("eth0 is no trusted network device"));
    EXPECT_THAT(refusal(RemoveSoftRdmaLink{"a b", false}), HasSubstr("is no name of an RDMA link"));
}

TEST(Admit, NoDeviceThatIsNotTheVf) {
    EXPECT_THAT(refusal(attach_device("a", disk)), HasSubstr("is not at 0000:05:00.0"));
    EXPECT_THAT(refusal(attach_device("a", asked_pci), HostView{}), HasSubstr("is not at"));
}

TEST(Admit, NoVfThatAnotherVmHas) {
    for (bool const live : {true, false}) {
        auto host = asked_host();
        add_vm(host, "b", live);
        EXPECT_THAT(refusal(attach_device("a"), host), HasSubstr("is in the XML of VM name-of-b"));
        EXPECT_EQ(refusal(attach_device("b"), host), "") << "asked again";
        EXPECT_THAT(refusal(SetNumVfs{asked_pf, 0}, host), HasSubstr("in the XML of VM"));
        EXPECT_EQ(refusal(SetNumVfs{asked_pf, 1}, host), "") << "it stays";
    }
}

// Another program removes VFs from running VMs and makes fewer anew: to make as many as before,
// vfmgrd has those removed that the VMs' persistent XML still names, by vfmgr's own doing.
TEST(Admit, VfsAreMadeAnewThoughTheirVmsGetThemAtTheNextStart) {
    auto host = asked_host();
    add_vm(host, "b", false);
    auto& vm = host.hypervisor.vms.at("b");
    vm.config.back().alias = "ua-vfmgr-00000001";
    EXPECT_EQ(refusal(SetNumVfs{asked_pf, 7}, host), "");
    EXPECT_EQ(refusal(SetNumVfs{asked_pf, 0}, host), "");
    vm.live = vm.config;
    EXPECT_THAT(refusal(SetNumVfs{asked_pf, 7}, host), HasSubstr("in the XML of VM name-of-b"));
    vm.live.clear();
    vm.config.push_back({asked_pci, {}});
    EXPECT_THAT(refusal(SetNumVfs{asked_pf, 7}, host), HasSubstr("in the XML of VM name-of-b"));
}

TEST(Admit, NoVfThatWasNotResetSinceAnotherVmHadIt) {
    Records records;
    records[asked_vf] = {{}, {}, "b", false};
    EXPECT_EQ(refusal(attach_device("a"), asked_host(), records),
              "the broker refuses this: VF 0000:01:00.0/3 was not reset since VM b had it");
    EXPECT_EQ(refusal(attach_device("b"), asked_host(), records), "");
    records[asked_vf].clean = true;
    EXPECT_EQ(refusal(attach_device("a"), asked_host(), records), "");
}

TEST(Admit, NothingBeyondTheBoundsButTheVfsOwnBaseline) {
    HostRules rules;
    rules.bounds.default_pf.trust = false;
    VfSpec trusted;
    trusted.trust = true;
    ConfigureVfs const step{asked_pf, {{asked_vf.index, trusted}}, {}};
    EXPECT_THAT(refusal(step, asked_host(), {}, rules), HasSubstr("trust on is not allowed"));
    Records records;
    records[asked_vf].baseline.trust = true;
    EXPECT_EQ(refusal(step, asked_host(), records, rules), "") << "its undo";
    auto host = asked_host();
    host.kernel.pfs.at(asked_pf).vfs.front().settings.trust = true;
    EXPECT_THAT(refusal(attach_device(), host, records, rules), HasSubstr("trust on"))
        << "restored is not attached";
}

TEST(Admit, TheEndOfAnAttachmentWhateverTheBounds) {
    HostRules rules;
    rules.bounds.default_pf.managed = false;
    Records records;
    records[asked_vf].driver = "igbvf";
    InterfaceId const interface{asked_pf, 100};
    for (Step const& step :
         {Step(DetachHostdev{"a", "00000001", asked_vf, asked_pci, true, true, "vm"}),
          Step(ResetVf{asked_vf}), Step(BindVfs{asked_pf, {3}, "igbvf"}),
          Step(RemovePeer{interface, IpAddress::parse("10.0.0.2").value()}),
          Step(RemoveAddress{interface, IpAddress::parse("10.0.0.1").value()}),
          Step(RemoveVlanInterface{interface}), Step(RemoveRdmaLink{asked_pf})})
        EXPECT_EQ(refusal(step, {}, records, rules), "") << sentence(step);
    for (Step const& step :
         {Step(BindVfs{asked_pf, {3}, "vfio-pci"}), Step(BindVfs{asked_pf, {3, 4}, "igbvf"}),
          Step(ResetVf{{asked_pf, 4}}), Step(AddVlanInterface{interface})})
        EXPECT_THAT(refusal(step, {}, records, rules), HasSubstr("may not be managed"))
            << sentence(step);
}

constexpr std::uint32_t holders_uid = 64055;

HostRules rules_with_holders() {
    HostRules rules;
    rules.bounds.external_holders = {true, {{holders_uid, holders_uid}}};
    return rules;
}

AttachExternal attach_holder(std::string holder = "qm-104",
                             std::optional<std::uint32_t> uid = holders_uid) {
    return {asked_vf, std::move(holder), uid};
}

DetachExternal detach_holder(std::optional<std::uint32_t> owner) {
    return {asked_vf, "qm-104", owner};
}

TEST(AdmitExternal, OnlyWhatRootAllows) {
    auto const rules = rules_with_holders();
    EXPECT_EQ(refusal(attach_holder(), asked_host(), {}, rules), "");
    EXPECT_EQ(refusal(attach_holder("qm-104", {}), asked_host(), {}, rules), "");
    EXPECT_THAT(refusal(attach_holder("qm-104", {})), HasSubstr("are not allowed on this host"));
    EXPECT_THAT(refusal(attach_holder("qm-104", holders_uid + 1), asked_host(), {}, rules),
                HasSubstr("allowed are 64055"));
    EXPECT_THAT(refusal(attach_holder("../x"), asked_host(), {}, rules),
                HasSubstr("is no name of a holder"));
    EXPECT_THAT(refusal(attach_holder(), HostView{}, {}, rules), HasSubstr("there is no VF"));
}

TEST(AdmitExternal, NoVfThatAVmHasOrHadBeforeItsReset) {
    auto const rules = rules_with_holders();
    for (bool const live : {true, false}) {
        auto host = asked_host();
        add_vm(host, "b", live);
        EXPECT_THAT(refusal(attach_holder(), host, {}, rules), HasSubstr("is in the XML of VM"));
    }
    Records records;
    records[asked_vf] = {{}, {}, "b", false};
    EXPECT_THAT(refusal(attach_holder(), asked_host(), records, rules),
                HasSubstr("was not reset since VM b had it"));
    records[asked_vf].vm_uuid = external_key("qm-105");
    EXPECT_THAT(refusal(attach_holder(), asked_host(), records, rules),
                HasSubstr("was not reset since VM external:qm-105 had it"));
    EXPECT_NE(refusal(attach_device("a"), asked_host(), records), "") << "nor does a VM get it";
    EXPECT_EQ(refusal(attach_holder("qm-105"), asked_host(), records, rules), "") << "at a boot";
    records[asked_vf].clean = true;
    EXPECT_EQ(refusal(attach_holder(), asked_host(), records, rules), "");
}

TEST(AdmitExternal, ItsEndGivesTheNodesToNobodyElse) {
    Records records;
    records[asked_vf] = {{}, {}, external_key("qm-104"), false, 107};
    for (auto const owner : {std::optional<std::uint32_t>(), {0U}, {107U}})
        EXPECT_EQ(refusal(detach_holder(owner), asked_host(), records), "");
    EXPECT_THAT(refusal(detach_holder(1000), asked_host(), records),
                HasSubstr("user 1000 did not have VF"));
    auto host = asked_host();
    host.kernel.pfs.at(asked_pf).vfs.front().vfio = VfioPaths{"/dev/vfio/1", {}, 1000};
    EXPECT_EQ(refusal(detach_holder(1000), host), "") << "the undo of an attach that was refused";
    records[asked_vf].vm_uuid = "b";
    EXPECT_THAT(refusal(detach_holder(0), host, records), HasSubstr("is VM b's"));
}

TEST(AdmitExternal, LibvirtIsNotAskedForAHolderThatHadTheVf) {
    Records records;
    EXPECT_EQ(sight_for(records, attach_holder()), Sight::pf_and_vms);
    records[asked_vf] = {{}, {}, external_key("qm-104"), false};
    EXPECT_EQ(sight_for(records, attach_holder()), Sight::pf);
    EXPECT_EQ(sight_for(records, attach_holder("qm-105")), Sight::pf_and_vms);
    EXPECT_EQ(sight_for(records, detach_holder(0)), Sight::pf);
    records[asked_vf].clean = true;
    EXPECT_EQ(sight_for(records, attach_holder()), Sight::pf_and_vms);
}

TEST(SightFor, IsAsNarrowAsTheStepAllows) {
    Records records;
    EXPECT_EQ(sight_for(records, ResetVf{asked_vf}), Sight::pf);
    records[asked_vf] = {};
    EXPECT_EQ(sight_for(records, ResetVf{asked_vf}), Sight::nothing);
    EXPECT_EQ(sight_for(records, attach_device()), Sight::pf_and_vms);
    EXPECT_EQ(sight_for(records, SetNumVfs{asked_pf, 1}), Sight::pf_and_vms);
}

}  // namespace
}  // namespace vfmgr::broker
