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

// A VM without a vsock device, whose guest is on TCP.
class OnTcp : public testing::Test {
  protected:
    OnTcp() {
        auto& attachment = desired->attachments["a1"];
        attachment.id = "a1";
        attachment.vm = "qm-104";
        attachment.vf = {pf, 3};
        attachment.spec.network = "train";
        attachment.spec.guest_plane = GuestTransport::tcp;
        attachment.state = AttachmentState::attached;
        attachment.settings.mac = MacAddress::parse("52:54:00:11:22:33").value();
        attachment.address = IpAddress::parse("192.168.100.7").value();
        auto& network = desired->networks["train"].network;
        network.name = "train";
        network.prefix = IpPrefix::parse("192.168.100.0/24").value();
        network.pfs = {{pf, host_address}};
        HostInterface interface;
        interface.id = {pf, {}};
        interface.ifname = "enp1s0";
        host->kernel.pfs[pf].interfaces = {interface};
    }
    [[nodiscard]] std::map<std::string, GuestVm> guests() const {
        return guest_vms({host, desired, runs, nullptr});
    }

    IpAddress const host_address = IpAddress::parse("192.168.100.1").value();
    std::shared_ptr<HostView> host = std::make_shared<HostView>();
    std::shared_ptr<DesiredState> desired = std::make_shared<DesiredState>();
    std::shared_ptr<std::map<std::string, PendingRun>> runs =
        std::make_shared<std::map<std::string, PendingRun>>();
};

TEST_F(OnTcp, IsAGuestOfItsOwnWithItsAttachmentAlone) {
    (*runs)["a1"].run = "r1";
    desired->guest_keys["a1"] = {"a1", {}, {{"k", {}}}};
    auto const all = guests();
    ASSERT_EQ(all.size(), 1U);
    auto const& guest = all.at("tcp:a1");
    EXPECT_EQ(
        guest.tcp,
        (TcpGuest{"enp1s0", host_address, IpAddress::parse("192.168.100.7").value(), {{"k", {}}}}));
    ASSERT_EQ(guest.access.attachments.size(), 1U);
    EXPECT_EQ(guest.access.attachments[0].run, "r1");
    ASSERT_EQ(guest.access.permits.size(), 1U);
    EXPECT_EQ(guest.access.permits[0].vm, "tcp:a1") << "its own share of the responder";
}

TEST_F(OnTcp, IsNoGuestBeforeItIsAttachedAndAfter) {
    desired->attachments["a1"].state = AttachmentState::detaching;
    EXPECT_TRUE(guests().empty());
}

TEST_F(OnTcp, IsNotReachedByVsock) {
    auto& vm = host->hypervisor.vms["uuid"];
    vm.name = "vm1";
    vm.vsock_cid = 3;
    vm.start_id = 1;
    desired->attachments["a1"].vm_uuid = "uuid";
    EXPECT_TRUE(guests().at("uuid").access.attachments.empty());
    EXPECT_EQ(guests().at("tcp:a1").access.attachments.size(), 1U);
}

TEST_F(OnTcp, IsToldAllThatItNeedsToSetUpItsVf) {
    auto const& attachment = desired->attachments.at("a1");
    auto const told = enrolment_of(attachment, *network_of(desired->networks, attachment));
    EXPECT_EQ(told.attachment.responder, host_address);
    EXPECT_EQ(told.attachment.mac, attachment.settings.mac);
    EXPECT_EQ(told.attachment.prefix_length, 24);
    EXPECT_EQ(told.port, guest_plane_port);
    EXPECT_TRUE(told.token.empty());
}

}  // namespace
}  // namespace vfmgr
