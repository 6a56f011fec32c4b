// SPDX-License-Identifier: Apache-2.0
#include "service/guest/access.hpp"

#include <gmock/gmock.h>

namespace vfmgr {
namespace {

PciAddress const pf{0, 1, 0, 0};

// A VF attached with a VLAN and trust, and the host's report of it.
struct Attached {
    VfSpec found;
    Verification verification;

    Attached() {
        found.vlan = Vlan{100, 0, VlanProtocol::dot1q};
        found.trust = true;
        found.mac = MacAddress::parse("52:54:00:11:22:33").value();
        verification.attachment = "a1";
        verification.verdict = Verdict::fail;
        verification.detail = "reachability: no datagram came";
        verification.remedy = "check the VF";
    }
    [[nodiscard]] Verification explained() const {
        Attachment attachment;
        attachment.id = "a1";
        attachment.vf = {pf, 3};
        attachment.settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
        attachment.settings.trust = true;
        attachment.settings.mac = found.mac;
        auto desired = std::make_shared<DesiredState>();
        desired->attachments["a1"] = attachment;
        auto host = std::make_shared<HostView>();
        VfState vf;
        vf.index = 3;
        vf.settings = found;
        host->kernel.pfs[pf].vfs = {vf};
        auto shown = verification;
        explain_failure({host, desired, nullptr, nullptr}, shown);
        return shown;
    }
};

TEST(ExplainFailure, NamesWhatSomebodyChanged) {
    Attached attached;
    attached.found.vlan->id = 200;
    auto const shown = attached.explained();
    EXPECT_EQ(
        shown.detail,
        "reachability: no datagram came; on the host, VF 3 of 0000:01:00.0 has vlan 200 qos 0 "
        "802.1q, but was attached with vlan 100 qos 0 802.1q");
    EXPECT_NE(shown.remedy.find("detach attachment a1"), std::string::npos);
}

TEST(ExplainFailure, SaysNothingWhereThereIsNothingToSay) {
    Attached unchanged;
    EXPECT_EQ(unchanged.explained(), unchanged.verification);
    Attached silent;  // a driver that reports no trust
    silent.found.trust.reset();
    EXPECT_EQ(silent.explained(), silent.verification);
    Attached passed;
    passed.found.vlan->id = 200;
    passed.verification.verdict = Verdict::pass;
    EXPECT_EQ(passed.explained(), passed.verification);
    Attached gone;
    gone.verification.attachment = "a2";
    EXPECT_EQ(gone.explained(), gone.verification);
}

// --- runs that another host answers -------------------------------------------------------------

// An attachment of VM "u1" in network train, with a run.
Snapshot with_run(std::optional<RemoteEnd> remote, std::vector<HostInterface> interfaces) {
    Network network;
    network.name = "train";
    network.vlan = 100;
    network.dscp = 26;
    network.pfs = {{pf, IpAddress::parse("192.168.100.3").value()}};
    auto desired = std::make_shared<DesiredState>();
    desired->networks["train"] = {network};
    Attachment attachment;
    attachment.id = "a1";
    attachment.vm_uuid = "u1";
    attachment.vf = {pf, 0};
    attachment.state = AttachmentState::attached;
    attachment.spec.network = "train";
    attachment.address = IpAddress::parse("192.168.100.10").value();
    attachment.settings.mac = MacAddress::parse("52:54:00:11:22:33").value();
    desired->attachments["a1"] = attachment;
    auto host = std::make_shared<HostView>();
    host->kernel.pfs[pf].interfaces = std::move(interfaces);
    VmInfo vm;
    vm.uuid = "u1";
    vm.name = "one";
    vm.start_id = 7;
    vm.vsock_cid = 3;
    host->hypervisor.vms["u1"] = vm;
    vm.uuid = "u2";
    vm.vsock_cid = 4;
    host->hypervisor.vms["u2"] = vm;
    vm.uuid = "u3";
    vm.start_id.reset();
    host->hypervisor.vms["u3"] = vm;
    auto runs = std::make_shared<std::map<std::string, PendingRun>>();
    (*runs)["a1"] = {"r1", "n1", {}, {}, Profile::quick, std::move(remote)};
    return {host, desired, runs, nullptr};
}

HostInterface interface_of_train() {
    HostInterface interface;
    interface.id = InterfaceId{pf, 100};
    interface.ifname = "enp1s0.100";
    return interface;
}

RemoteEnd second_machine() {
    RemoteEnd remote;
    remote.target = {{"10.99.0.2", 8473}, "6f1c", "vfr_1"};
    remote.info.address = IpAddress::parse("192.168.100.200").value();
    remote.info.echo_port = 9000;
    remote.path = TestPath::wire;
    return remote;
}

GuestAccess access_of(std::string const& uuid, Snapshot const& now) {
    return guest_vms(now).at(uuid).access;
}

TEST(GuestVms, AreThoseThatRunAndCanConnect) {
    auto now = with_run({}, {interface_of_train()});
    auto const all = guest_vms(now);
    EXPECT_EQ(all.at("u1").vm, (VmIdentity{"u1", "one", 7}));
    EXPECT_EQ(all.at("u1").cid, 3u);
    EXPECT_EQ(all.size(), 2u) << "u3 is off";
    auto host = std::make_shared<HostView>(*now.host);
    host->hypervisor.vms.erase("u1");
    now.host = host;
    EXPECT_FALSE(guest_vms(now).contains("u1"));
}

TEST(GuestVms, HaveAPermitForInteropClientsWhereTheHostIsInTheNetwork) {
    auto const now = with_run({}, {interface_of_train()});
    EXPECT_THAT(access_of("u1", now).interop,
                testing::ElementsAre(interop_permit(now, "a1").value()));
    EXPECT_TRUE(access_of("u1", with_run({}, {})).interop.empty());
    EXPECT_TRUE(access_of("u2", now).interop.empty());
}

TEST(GuestAccess, ARunOfThisHostNamesThisHost) {
    auto const access = access_of("u1", with_run({}, {interface_of_train()}));
    EXPECT_EQ(to_string(access.attachments.at(0).responder), "192.168.100.3");
    EXPECT_EQ(access.permits.at(0).host_netdev, "enp1s0.100");
    EXPECT_EQ(access.permits.at(0).path, TestPath::internal_switch);
    EXPECT_EQ(access.attachments.at(0).dscp, 26);
    EXPECT_EQ(access.permits.at(0).dscp, 26);
    EXPECT_TRUE(access.remotes.empty());
    EXPECT_TRUE(access_of("u1", with_run({}, {})).permits.empty()) << "no interface";
}

TEST(GuestAccess, OnInfiniBandTheVfIsKnownByItsPortsGuid) {
    auto now = with_run({}, {interface_of_train()});
    auto desired = std::make_shared<DesiredState>(*now.desired);
    auto& network = desired->networks["train"].network;
    network.pkey = Pkey{1, PkeyMembership::limited};
    auto& settings = desired->attachments["a1"].settings;
    settings.mac.reset();
    settings.port_guid = Guid{0x0202'c9ff'fe11'0002};
    now.desired = desired;
    auto host = std::make_shared<HostView>(*now.host);
    host->kernel.pfs[pf].info.port_guid = Guid{0x0002'c9ff'fe11'0001};
    now.host = host;
    auto const access = access_of("u1", now);
    auto const& configured = access.attachments.at(0);
    EXPECT_FALSE(configured.mac);
    EXPECT_EQ(configured.guid, settings.port_guid);
    EXPECT_EQ(configured.pkey, network.pkey);
    auto const& permit = access.permits.at(0);
    EXPECT_EQ(permit.vf_mac, MacAddress{});
    EXPECT_EQ(permit.vf_guid, settings.port_guid);
    EXPECT_EQ(permit.host_guid, (Guid{0x0002'c9ff'fe11'0001}));
    EXPECT_EQ(permit.pkey, network.pkey);
    EXPECT_TRUE(access.interop.empty());
}

TEST(GuestAccess, ARunOfAnotherHostNamesThatHost) {
    auto const access = access_of("u1", with_run(second_machine(), {}));
    auto const& attachment = access.attachments.at(0);
    EXPECT_EQ(to_string(attachment.responder), "192.168.100.200");
    EXPECT_EQ(attachment.echo_port, 9000);
    EXPECT_EQ(attachment.run, "r1");
    EXPECT_EQ(access.permits.at(0).path, TestPath::wire);
    EXPECT_EQ(access.permits.at(0).dscp, 26) << "its responder sends so, too";
    EXPECT_EQ(access.remotes.at("r1"), second_machine().target);
    EXPECT_TRUE(access_of("u2", with_run(second_machine(), {})).remotes.empty());
}

}  // namespace
}  // namespace vfmgr
