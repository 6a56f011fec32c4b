// SPDX-License-Identifier: Apache-2.0
// Attachments whose guest reaches the host by TCP: what they need, and what is opened for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::Contains;
using testing::HasSubstr;

AttachmentSpec on_tcp(char const* vm = "vm1") {
    auto spec = ask(vm);
    spec.guest_plane = GuestTransport::tcp;
    return spec;
}

Error refusal(AttachmentSpec const& spec, HostView const& view = host()) {
    auto const planned = plan(view, desired(), spec);
    EXPECT_FALSE(planned);
    return planned ? Error{} : planned.error();
}

TEST(GuestPlaneTcp, OpensThePortToTheVfsMacAndAddressAlone) {
    auto const planned = plan(host(), desired(), on_tcp()).value();
    auto const peers = steps_of<AddPeer>(planned.plan);
    ASSERT_EQ(peers.size(), 1U);
    EXPECT_TRUE(peers[0].guest_plane);
    EXPECT_EQ(peers[0].mac, planned.attachment.settings.mac);
    EXPECT_EQ(peers[0].address, planned.attachment.address);
    EXPECT_THAT(sentence(peers[0]), HasSubstr("open the guest plane's TCP port to it"));
    EXPECT_FALSE(steps_of<AddPeer>(plan(host(), desired(), ask()).value().plan)[0].guest_plane);
}

TEST(GuestPlaneTcp, HoldsTheVfToItsMac) {
    auto const planned = plan(host(), desired(), on_tcp()).value();
    EXPECT_EQ(planned.attachment.settings.spoofchk, true);
    EXPECT_THAT(planned.plan.notes, Contains(HasSubstr("spoof check is on")));
    auto unchecked = on_tcp();
    unchecked.settings.spoofchk = false;
    EXPECT_THAT(refusal(unchecked).detail, HasSubstr("a spoof check that may be off"));
    auto perhaps = on_tcp();
    perhaps.best_effort = {"spoofchk"};
    EXPECT_THAT(refusal(perhaps).remedy, HasSubstr("guest_plane vsock"));
    auto trusted = on_tcp();
    trusted.settings.trust = true;
    EXPECT_THAT(refusal(trusted).detail, HasSubstr("trust on"));
}

TEST(GuestPlaneTcp, NeedsANetwork) {
    auto spec = on_tcp();
    spec.network.reset();
    auto const error = refusal(spec);
    EXPECT_EQ(error.problem, Problem::conflict);
    EXPECT_THAT(error.remedy, HasSubstr("attach with a network"));
}

TEST(GuestPlaneTcp, ProvesInAVmWithoutVsock) {
    auto view = host();
    auto& vm = view.hypervisor.vms.at(vm1_uuid);
    vm.has_vsock = false;
    vm.vsock_cid.reset();
    auto spec = on_tcp();
    spec.verify = VerifyMode::required;
    EXPECT_TRUE(plan(view, desired(), spec));
    spec.guest_plane.reset();
    EXPECT_THAT(refusal(spec, view).remedy, HasSubstr("guest_plane tcp"));
}

TEST(GuestPlaneTcp, ProvesInAnExternalHoldersVm) {
    auto spec = on_tcp("");
    spec.holder = ExternalHolder{HolderKind::external, "qm-104", {}};
    spec.verify = VerifyMode::required;
    auto const planned = plan(host(), desired(), spec).value();
    EXPECT_EQ(steps_of<AwaitVerification>(planned.plan).size(), 1U);
    spec.guest_plane = GuestTransport::vsock;
    EXPECT_THAT(refusal(spec).remedy, HasSubstr("guest_plane tcp"));
}

TEST(GuestPlaneTcp, AnOpenPortThatIsMissingIsDrift) {
    auto view = host();
    auto& interface = view.kernel.pfs[pf_address].interfaces[0];
    interface.addresses = {ip("192.168.50.1")};
    interface.peers = {{ip("192.168.50.7"), mac(2)}};
    interface.closed = {{ip("192.168.50.7"), mac(2), ip("192.168.50.1"), true}};
    EXPECT_EQ(inverse(RemovePeer{interface.id, ip("192.168.50.7")}, view),
              (std::vector<Step>{
                  AddPeer{interface.id, ip("192.168.50.7"), mac(2), ip("192.168.50.1"), true}}));
    AddPeer const closes{interface.id, ip("192.168.50.7"), mac(2), ip("192.168.50.1")};
    EXPECT_EQ(inverse(closes, view).size(), 1U) << "its port is opened again";
}

TEST(GuestPlaneTcp, NamesItsGuest) {
    Attachment attachment;
    attachment.id = "aaaa0001";
    attachment.vm_uuid = "uuid";
    EXPECT_EQ(guest_key(attachment), "uuid");
    attachment.spec.guest_plane = GuestTransport::tcp;
    EXPECT_EQ(guest_key(attachment), "tcp:aaaa0001");
    EXPECT_EQ(attachment_of_guest("tcp:aaaa0001"), "aaaa0001");
    EXPECT_EQ(attachment_of_guest("uuid"), "");
}

}  // namespace
}  // namespace vfmgr
