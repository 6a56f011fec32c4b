// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/rdma_links.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TrustedNetdevs const trusted{"bond0",  "eno2",     "lo",  "bond0.100", "eno3",
                             "enp1s0", "enp1s0v2", "ib0", "eno9",      "eno4"};

NetdevState ethernet() {
    NetdevState netdev;
    netdev.ethernet = netdev.up = true;
    return netdev;
}

SoftRdmaLink link_on(std::string netdev, SoftRdmaType type = SoftRdmaType::rxe) {
    return {"rxe0", type, std::move(netdev)};
}

// The example's host with a bond, its port, a VLAN device on it, a plain netdev and one that is
// down.
HostView with_network() {
    auto view = host();
    HostNetworkView network;
    network.rxe_module = true;
    network.siw_module = false;
    for (auto const* name : {"bond0", "eno2", "enp1s0"}) network.netdevs[name] = ethernet();
    network.netdevs["eno3"] = ethernet();
    network.netdevs["eno3"].controller = "bond0";
    network.netdevs["eno4"] = ethernet();
    network.netdevs["eno4"].up = false;
    network.netdevs["bond0.100"] = ethernet();
    network.netdevs["bond0.100"].parent = "bond0";
    network.netdevs["lo"].loopback = true;
    network.netdevs["ib0"].up = true;
    network.netdevs["enp1s0v2"] = ethernet();
    network.netdevs["enp1s0v2"].pci = view.kernel.pfs[pf_address].vfs[2].pci;
    view.kernel.network = network;
    return view;
}

ObservedRdmaLink observed(std::string netdev, SoftRdmaType type = SoftRdmaType::rxe) {
    ObservedRdmaLink link;
    link.type = type;
    link.ifname = std::move(netdev);
    link.active = true;
    return link;
}

HostView with_link(std::string netdev = "bond0") {
    auto view = with_network();
    view.kernel.network->rdma["rxe0"] = observed(std::move(netdev));
    return view;
}

DesiredState declared(std::string netdev = "bond0") {
    auto state = desired();
    state.rdma_links["rxe0"] = {link_on(std::move(netdev)), 1};
    return state;
}

Error refused(HostView const& view, SoftRdmaLink const& requested) {
    return plan_rdma_link(view, desired(), trusted, requested).error();
}

TEST(PlanRdmaLink, IsMadeOnANetdevOrABondAndSaysWhatToLookAt) {
    for (auto const* netdev : {"bond0", "eno2", "enp1s0"}) {
        auto const plan =
            plan_rdma_link(with_network(), desired(), trusted, link_on(netdev)).value();
        EXPECT_THAT(plan.steps, ElementsAre(Step(AddSoftRdmaLink{link_on(netdev)})));
        ASSERT_EQ(plan.notes.size(), 1U);
        EXPECT_THAT(plan.notes[0], HasSubstr("UDP port 4791"));
        EXPECT_THAT(plan.notes[0], HasSubstr("vfctl doctor --symptom softroce"));
    }
}

TEST(PlanRdmaLink, OnlyOnTrustedNetworks) {
    auto const untrusted =
        plan_rdma_link(with_network(), desired(), {"eno2"}, link_on("bond0")).error();
    EXPECT_EQ(untrusted.problem, Problem::forbidden);
    EXPECT_EQ(untrusted.detail,
              "bond0 is not marked as a trusted network, and SoftRoCE answers any machine that "
              "reaches UDP port 4791 over it, in the kernel");
    EXPECT_EQ(untrusted.remedy,
              "if only trusted machines reach it, set trusted_netdevs = [\"eno2\", \"bond0\"] "
              "under [rdma_links] in /etc/vfmgr/vfmgr.toml, then systemctl restart vfmgrd");
    EXPECT_EQ(plan_rdma_link(with_network(), desired(), {}, link_on("bond0")).error().problem,
              Problem::forbidden)
        << "none is trusted unless somebody says so";
    EXPECT_EQ(plan_rdma_link(with_link(), declared(), {"eno2"}, link_on("bond0")).error().problem,
              Problem::forbidden)
        << "nor any longer than somebody says so";
}

TEST(PlanRdmaLink, RefusesNamesThatWillNotDo) {
    for (auto const* name : {"", "-rf", "a/b", "rxe%d", "rxe 0", "vfmgr_bond0"}) {
        auto requested = link_on("bond0");
        requested.name = name;
        EXPECT_EQ(refused(with_network(), requested).problem, Problem::invalid_request) << name;
    }
    auto requested = link_on("bond0");
    requested.name = std::string(64, 'a');
    EXPECT_EQ(refused(with_network(), requested).problem, Problem::invalid_request);
    requested.name.pop_back();
    EXPECT_TRUE(plan_rdma_link(with_network(), desired(), trusted, requested));
    EXPECT_EQ(refused(with_network(), link_on("a/../b")).problem, Problem::invalid_request);
}

TEST(PlanRdmaLink, RefusesNetdevsThatAreNotThereOrDown) {
    auto const absent = refused(with_network(), link_on("eno9"));
    EXPECT_EQ(absent.problem, Problem::not_found);
    EXPECT_THAT(absent.remedy, HasSubstr("bond0, eno2, eno4"));
    EXPECT_THAT(absent.remedy, testing::Not(HasSubstr("eno3"))) << "it is in the bond";
    auto const down = refused(with_network(), link_on("eno4"));
    EXPECT_EQ(down.problem, Problem::conflict);
    EXPECT_EQ(down.remedy, "bring it up: ip link set dev eno4 up");
}

TEST(PlanRdmaLink, RefusesNetdevsOfAKindThatWillNotDo) {
    EXPECT_THAT(refused(with_network(), link_on("lo")).detail, HasSubstr("loopback"));
    EXPECT_THAT(refused(with_network(), link_on("ib0")).detail, HasSubstr("not an Ethernet"));
    auto const vlan = refused(with_network(), link_on("bond0.100"));
    EXPECT_EQ(vlan.problem, Problem::unsupported);
    EXPECT_EQ(vlan.remedy, "make it there: vfctl rdma link add rxe0 type rxe netdev bond0");
    auto const port = refused(with_network(), link_on("eno3"));
    EXPECT_EQ(port.problem, Problem::conflict);
    EXPECT_EQ(port.remedy, vlan.remedy);
    auto view = with_network();
    view.kernel.network->siw_module = true;
    EXPECT_TRUE(plan_rdma_link(view, desired(), trusted, link_on("bond0.100", SoftRdmaType::siw)))
        << "iWARP is TCP and takes a VLAN device";
}

TEST(PlanRdmaLink, RefusesTheNetdevOfAVfThatIsAttached) {
    auto const plan =
        plan_rdma_link(with_network(), desired(), trusted, link_on("enp1s0v2")).value();
    EXPECT_THAT(plan.notes[0], HasSubstr("when the VF is attached, the link goes with its netdev"));
    auto state = desired();
    Attachment attachment;
    attachment.vf = {pf_address, 2};
    attachment.vm = "vm1";
    state.attachments["aaaa0001"] = attachment;
    auto const attached =
        plan_rdma_link(with_network(), state, trusted, link_on("enp1s0v2")).error();
    EXPECT_EQ(attached.problem, Problem::vf_in_use);
    EXPECT_THAT(attached.detail, HasSubstr("attached to vm1 (attachment aaaa0001)"));
}

TEST(PlanRdmaLink, RefusesANameOrANetdevThatIsTaken) {
    auto view = with_network();
    view.kernel.network->rdma["rxe0"] = observed("eno2");
    auto const elsewhere = refused(view, link_on("bond0"));
    EXPECT_EQ(elsewhere.problem, Problem::conflict);
    EXPECT_EQ(elsewhere.detail,
              "rxe0 is already a link of type rxe on eno2, which vfmgr did not create");
    view.kernel.network->rdma["rxe0"] = {};
    EXPECT_THAT(refused(view, link_on("bond0")).detail, HasSubstr("not a software link"));

    view = with_network();
    view.kernel.network->rdma["rxe7"] = observed("bond0");
    EXPECT_THAT(refused(view, link_on("bond0")).remedy, HasSubstr("rdma link delete rxe7"));
    view.kernel.network->rdma["rxe7"].type = SoftRdmaType::siw;
    EXPECT_TRUE(plan_rdma_link(view, desired(), trusted, link_on("bond0")))
        << "one of the other type is no hindrance";
    view.kernel.network->rdma["vfmgr_enp1s0"] = observed("enp1s0");
    auto const responders = refused(view, link_on("enp1s0"));
    EXPECT_THAT(responders.detail, HasSubstr("which vfmgr created to test attached VFs"));
    EXPECT_THAT(responders.remedy, HasSubstr("use vfmgr_enp1s0"));
}

TEST(PlanRdmaLink, RefusesWithoutItsModule) {
    auto const siw = refused(with_network(), link_on("bond0", SoftRdmaType::siw));
    EXPECT_EQ(siw.problem, Problem::unsupported);
    EXPECT_EQ(siw.detail, "this kernel has no module siw");
    EXPECT_THAT(siw.remedy, HasSubstr("modprobe siw"));
    auto view = with_network();
    view.kernel.network->rxe_module.reset();
    EXPECT_TRUE(plan_rdma_link(view, desired(), trusted, link_on("bond0")))
        << "where it can't be seen, the kernel decides";
    view.kernel.network->rxe_module = false;
    EXPECT_THAT(refused(view, link_on("bond0")).remedy, HasSubstr("modprobe rdma_rxe"));
}

TEST(PlanRdmaLink, IsThereAlready) {
    auto const again = plan_rdma_link(with_link(), declared(), trusted, link_on("bond0")).value();
    EXPECT_EQ(again, Plan{});
    auto const taken_over =
        plan_rdma_link(with_link(), desired(), trusted, link_on("bond0")).value();
    EXPECT_THAT(taken_over.steps, IsEmpty());
    EXPECT_THAT(taken_over.notes[0], HasSubstr("from now on vfmgr owns it"));
    auto const other = plan_rdma_link(with_link(), declared(), trusted, link_on("eno2")).error();
    EXPECT_EQ(other.problem, Problem::conflict);
    EXPECT_THAT(other.remedy, HasSubstr("vfctl rdma link delete rxe0"));
}

TEST(PlanRdmaLink, OneThatIsWantedWaitsForItsNetdev) {
    auto view = with_network();
    view.kernel.network->netdevs.erase("bond0");
    auto const plan = plan_rdma_link(view, declared(), trusted, link_on("bond0")).value();
    EXPECT_THAT(plan.steps, IsEmpty());
    EXPECT_THAT(plan.notes, ElementsAre("waits for bond0"));
}

TEST(PlanRdmaLink, RefusesWhatCannotBeSeen) {
    EXPECT_EQ(refused(host(), link_on("bond0")).problem, Problem::unavailable);
    auto view = with_network();
    view.kernel.network->stale = true;
    view.kernel.network->stale_reason = "its worker hangs";
    EXPECT_THAT(refused(view, link_on("bond0")).detail, HasSubstr("its worker hangs"));
    EXPECT_EQ(plan_rdma_link_removal(view, declared(), {"rxe0", true}).error().problem,
              Problem::unavailable);
}

// --- removal ---

TEST(PlanRdmaLinkRemoval, DeletesWhatIsWantedOfVfmgr) {
    auto const plan = plan_rdma_link_removal(with_link(), declared(), {"rxe0", false}).value();
    EXPECT_EQ(plan.steps, (std::vector<Step>{RemoveSoftRdmaLink{"rxe0", false}}));
    EXPECT_THAT(plan.blast_radius, IsEmpty());
}

TEST(PlanRdmaLinkRemoval, LeavesWhatOthersMade) {
    auto const others = plan_rdma_link_removal(with_link(), desired(), {"rxe0", true}).error();
    EXPECT_EQ(others.problem, Problem::conflict);
    EXPECT_THAT(others.remedy, HasSubstr("rdma link delete rxe0"));
    EXPECT_EQ(plan_rdma_link_removal(with_network(), desired(), {"rxe0", true}).error().problem,
              Problem::not_found);
    auto const changed =
        plan_rdma_link_removal(with_link("eno2"), declared(), {"rxe0", true}).value();
    EXPECT_THAT(changed.steps, IsEmpty()) << "somebody made another of its name";
    EXPECT_THAT(changed.notes[0], HasSubstr("on eno2, which stays"));
    EXPECT_THAT(plan_rdma_link_removal(with_network(), declared(), {"rxe0", false})->steps,
                IsEmpty())
        << "what is not there need not go";
}

TEST(PlanRdmaLinkRemoval, NamesWhoeverUsesIt) {
    auto view = with_link();
    auto& link = view.kernel.network->rdma["rxe0"];
    link.users = {{{}, "nvme_rdma", "CM id"}};
    auto const used = plan_rdma_link_removal(view, declared(), {"rxe0", false}).error();
    EXPECT_EQ(used.problem, Problem::link_in_use);
    EXPECT_EQ(used.detail, "RDMA link rxe0 is in use: the kernel (nvme_rdma) has a CM id");
    EXPECT_THAT(used.remedy, HasSubstr("--force"));
    auto const forced = plan_rdma_link_removal(view, declared(), {"rxe0", true}).value();
    EXPECT_EQ(forced.steps, (std::vector<Step>{RemoveSoftRdmaLink{"rxe0", true}}));
    EXPECT_THAT(forced.blast_radius, ElementsAre(HasSubstr("nvme_rdma")));
}

// The kernel would block the process that deletes it until the users have closed it.
TEST(PlanRdmaLinkRemoval, ProcessesEndFirstAlsoByForce) {
    auto view = with_link();
    auto& link = view.kernel.network->rdma["rxe0"];
    link.users = {{812, "ibv_rc_pingpong", "queue pair"}, {813, "rping", "CM id"}};
    for (bool const force : {false, true}) {
        auto const used = plan_rdma_link_removal(view, declared(), {"rxe0", force}).error();
        EXPECT_EQ(used.problem, Problem::link_in_use);
        EXPECT_EQ(used.detail,
                  "RDMA link rxe0 is in use: ibv_rc_pingpong (pid 812) has a queue pair; rping "
                  "(pid 813) has a CM id");
        EXPECT_THAT(used.remedy, HasSubstr("kill 812 813"));
    }
    link.users = {{700, "vfmgrd", "queue pair"}};
    EXPECT_THAT(plan_rdma_link_removal(view, declared(), {"rxe0", true}).error().remedy,
                HasSubstr("when the running verification has ended"));
}

TEST(PlanRdmaLinkRemoval, WhatCannotBeSeenCountsAsUsed) {
    auto view = with_link();
    view.kernel.network->rdma["rxe0"].users_unknown = "EPERM";
    auto const used = plan_rdma_link_removal(view, declared(), {"rxe0", false}).error();
    EXPECT_EQ(used.problem, Problem::link_in_use);
    EXPECT_THAT(used.detail, HasSubstr("its users can't be read: EPERM"));
    EXPECT_TRUE(plan_rdma_link_removal(view, declared(), {"rxe0", true}));
}

TEST(PlanRdmaLinkRemoval, AVmThatIsTestedOverItUsesIt) {
    auto view = with_link("enp1s0");
    view.kernel.pfs[pf_address].info.rdma_device = "rxe0";
    auto state = declared("enp1s0");
    Attachment attachment;
    attachment.vf = {pf_address, 2};
    attachment.vm = "vm1";
    attachment.spec.network = "train";
    state.attachments["aaaa0001"] = attachment;
    EXPECT_THAT(plan_rdma_link_removal(view, state, {"rxe0", false}).error().detail,
                HasSubstr("VM vm1 (attachment aaaa0001) tests over it"));
    state.attachments["aaaa0001"].spec.network.reset();
    EXPECT_TRUE(plan_rdma_link_removal(view, state, {"rxe0", false}));
}

// --- what is recreated, and what is shown ---

TEST(PlanRdmaLinkRestore, MakesItWhenItsNetdevIsThere) {
    auto network = *with_network().kernel.network;
    auto const restore = [&](TrustedNetdevs const& trust = trusted) {
        return plan_rdma_link_restore(network, trust, link_on("bond0"));
    };
    EXPECT_EQ(restore().steps, (std::vector<Step>{AddSoftRdmaLink{link_on("bond0")}}));
    EXPECT_THAT(restore({}).steps, IsEmpty());
    EXPECT_THAT(restore({}).notes[0], HasSubstr("no longer among trusted_netdevs"));
    network.rxe_module = false;
    EXPECT_THAT(restore().notes, ElementsAre("this kernel has no module rdma_rxe"));
    network.rxe_module = true;
    network.netdevs["bond0"].up = false;
    EXPECT_EQ(restore().steps.size(), 1U) << "at boot it is set up later";
    network.rdma["rxe0"] = observed("bond0");
    EXPECT_EQ(restore(), Plan{});
    network.rdma["rxe0"] = observed("eno2");
    EXPECT_THAT(restore().steps, IsEmpty());
    network.rdma.clear();
    network.netdevs.erase("bond0");
    EXPECT_THAT(restore().notes, ElementsAre("waits for bond0"));
    network.stale = true;
    EXPECT_THAT(restore().steps, IsEmpty());
}

TEST(RdmaLinks, ShowWhatIsBesideWhatIsWanted) {
    auto view = with_link();
    view.kernel.network->rdma["others"] = observed("eno2");
    view.kernel.network->rdma["mlx5_0"] = {};
    auto state = declared();
    state.rdma_links["far"] = {{"far", SoftRdmaType::rxe, "eno9"}, 1};
    auto const all = rdma_links(view, state, trusted);
    ASSERT_EQ(all.size(), 3U) << "hardware is none";
    EXPECT_EQ(all[0].name, "far");
    EXPECT_EQ(all[0].state, RdmaLinkState::waiting);
    EXPECT_EQ(all[0].observed, std::nullopt);
    EXPECT_EQ(all[1].name, "others");
    EXPECT_EQ(all[1].owner, RdmaLinkOwner::other);
    EXPECT_EQ(all[1].desired, std::nullopt);
    EXPECT_EQ(all[2].owner, RdmaLinkOwner::vfmgr);
    EXPECT_EQ(all[2].state, RdmaLinkState::present);
    EXPECT_EQ(all[2].revision, 1U);
    EXPECT_EQ(rdma_links(with_network(), declared(), {})[0].state, RdmaLinkState::untrusted);
    EXPECT_EQ(rdma_links(with_link("eno2"), declared(), trusted)[0].state, RdmaLinkState::conflict);
}

TEST(RdmaLinks, AreUndoneFromWhatWas) {
    AddSoftRdmaLink const add{link_on("bond0")};
    EXPECT_EQ(inverse(add, with_network()), (std::vector<Step>{RemoveSoftRdmaLink{"rxe0", false}}));
    EXPECT_THAT(inverse(add, with_link()), IsEmpty()) << "it was there";
    EXPECT_EQ(inverse(RemoveSoftRdmaLink{"rxe0", true}, with_link()), (std::vector<Step>{add}));
    EXPECT_THAT(inverse(RemoveSoftRdmaLink{"rxe0", true}, with_network()), IsEmpty());
}

}  // namespace
}  // namespace vfmgr
