// SPDX-License-Identifier: Apache-2.0
// Reasons to refuse or restrict an attachment, to keep its VM to the responder alone.
#include <gmock/gmock.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::EndsWith;
using testing::HasSubstr;

// Network train is on a VLAN device that an admin made.
HostView with_their_interface() {
    auto view = host();
    auto& pf = view.kernel.pfs[pf_address];
    pf.interfaces[0].up = pf.info.up = true;
    pf.interfaces[0].mtu = pf.info.mtu = 9216;
    auto theirs = pf.interfaces[0];
    theirs.id.vlan = 100;
    theirs.ifname = "storage";
    pf.interfaces.push_back(theirs);
    return view;
}

// Expects that the host is closed to a VM by its MAC.
void expect_held_to_its_mac(HostView view, AttachmentSpec spec, std::string const& remedy,
                            std::string const& without) {
    auto opens = without;
    view.kernel.pfs[pf_address].vfs[0].settings.spoofchk = false;
    view.kernel.pfs[pf_address].vfs[0].settings.trust = true;
    auto const attachment = plan(view, desired(), spec).value().attachment;
    EXPECT_EQ(attachment.settings.spoofchk, true);
    EXPECT_EQ(attachment.settings.trust, false);
    EXPECT_EQ(attachment.baseline.spoofchk, false) << "as it was before";
    auto const refused = [&](std::string const& why) {
        auto const error = plan(view, desired(), spec).error();
        EXPECT_EQ(error.problem, Problem::conflict);
        EXPECT_THAT(error.detail, HasSubstr(why));
        EXPECT_THAT(error.remedy, HasSubstr(remedy));
        EXPECT_THAT(error.remedy, EndsWith(opens));
    };
    spec.settings.spoofchk = false;
    opens += " --spoofchk off";
    refused("a spoof check that may be off");
    spec.settings.spoofchk = true;
    EXPECT_TRUE(plan(view, desired(), spec));
    opens = without;
    spec.best_effort = {"spoofchk"};
    refused("a spoof check that may be off");
    spec.best_effort = {"trust"};
    spec.settings.trust = true;
    opens += " --trust on";
    refused("trust on");
}

TEST(ClosedInterface, HoldsAVmToItsMacOnAnUntaggedNetwork) {
    auto spec = ask();
    spec.network = "plain";
    expect_held_to_its_mac(host(), spec, "vfctl network set plain --vlan",
                           "without a network, which leaves the host open to the VM: vfctl attach "
                           "vm1 --pf 0000:01:00.0");
    auto const tagged = plan(host(), desired(), ask()).value().attachment;
    EXPECT_EQ(tagged.settings.spoofchk, std::nullopt) << "vfmgr's own device is closed to all";
    spec.network.reset();
    spec.settings.spoofchk = false;
    EXPECT_TRUE(plan(host(), desired(), spec)) << "the host is not in its network";
}

TEST(ClosedInterface, HoldsAVmToItsMacOnSomebodyElsesVlanDevice) {
    expect_held_to_its_mac(with_their_interface(), ask(), "ip link del storage",
                           "without a network, which leaves the host open to the VM: vfctl attach "
                           "vm1 --pf 0000:01:00.0 --vlan 100");
    auto view = with_their_interface();
    view.kernel.pfs[pf_address].interfaces[1].ours = true;
    EXPECT_EQ(plan(view, desired(), ask()).value().attachment.settings.spoofchk, std::nullopt);
}

// The PF's own netdev has the host's addresses, too.
TEST(ClosedInterface, APeerComesBackAsOneOfTheResponder) {
    auto view = host();
    auto& interface = view.kernel.pfs[pf_address].interfaces[0];
    interface.addresses = {ip("10.1.2.3"), ip("192.168.50.1")};
    interface.peers = {{ip("192.168.50.7"), mac(2)}};
    interface.closed = {{ip("192.168.50.7"), mac(2), ip("192.168.50.1")}};
    EXPECT_EQ(
        inverse(RemovePeer{interface.id, ip("192.168.50.7")}, view),
        (std::vector<Step>{AddPeer{interface.id, ip("192.168.50.7"), mac(2), ip("192.168.50.1")}}));
}

// A PF that goes down loses routes and neighbours, and keeps its filter.
TEST(ClosedInterface, IsOfAVmNoMoreWhoseRouteWentBeforeItsDetach) {
    auto view = host();
    auto spec = ask();
    spec.network = "plain";
    auto const goal = with_attachment(desired(), view, "aaaa0001", spec);
    auto const& attachment = goal.attachments.at("aaaa0001");
    auto& interface = view.kernel.pfs[pf_address].interfaces[0];
    interface.addresses = {ip("192.168.50.1")};
    interface.closed = {{*attachment.address, *attachment.settings.mac, ip("192.168.50.1")}};
    EXPECT_EQ(steps_of<RemovePeer>(plan_detach(view, goal, attachment).value()),
              (std::vector<RemovePeer>{{interface.id, *attachment.address}}));
}

TEST(ClosedInterface, RefusesWhereAnotherRdmaListenerWouldBeReached) {
    auto view = host();
    auto& pf = view.kernel.pfs[pf_address];
    pf.info.rdma_device = "vfmgr_enp1s0";
    pf.listeners = {{7, "vfmgrd", ip("192.168.100.3"), 7174}, {8, "rping", ip("10.9.9.9"), 7174}};
    EXPECT_TRUE(plan(view, desired(), ask())) << "the responder's, and one on another interface";
    pf.listeners.push_back({std::nullopt, "nvmet_rdma", std::nullopt, 4420});
    auto const error = plan(view, desired(), ask()).error();
    EXPECT_EQ(error.problem, Problem::conflict);
    EXPECT_THAT(error.detail,
                HasSubstr("nvmet_rdma in the kernel listens with RDMA CM on every address of "
                          "vfmgr_enp1s0, port 4420, and VM vm1 would reach it on network train"));
    EXPECT_THAT(error.remedy, HasSubstr("rdma resource show cm_id"));
    EXPECT_THAT(error.remedy, EndsWith("vfctl attach vm1 --pf 0000:01:00.0 --vlan 100"));
    auto spec = ask();
    spec.network.reset();
    EXPECT_TRUE(plan(view, desired(), spec)) << "the host is not in its network";
    spec.network = "plain";
    pf.listeners = {{8, "rping", ip("10.1.2.3"), 7174}};
    EXPECT_TRUE(plan(view, desired(), spec));
    pf.interfaces[0].addresses = {ip("10.1.2.3")};
    EXPECT_THAT(plan(view, desired(), spec).error().detail,
                HasSubstr("rping (pid 8) listens with RDMA CM on 10.1.2.3"));
}

}  // namespace
}  // namespace vfmgr
