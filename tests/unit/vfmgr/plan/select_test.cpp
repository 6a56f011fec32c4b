// SPDX-License-Identifier: Apache-2.0
// Which PF and VF a request gets that names a network, a pool or a reservation.
#include "vfmgr/plan/select.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two managed PFs, with 7 and 4 VFs, that carry network train.
struct TwoPfs {
    HostView view = host();
    DesiredState goal = example::desired();
    AttachmentSpec spec = ask();

    TwoPfs() {
        auto other = pf(4);
        other.info.pci = second_pf;
        other.info.ifname = "enp2s0";
        other.info.driver = "mlx5_core";
        other.info.numa_node = 1;
        other.info.pci_ids = PciIds{0x15b3, 0x101d};
        other.info.pcie_root = "pci0000:3a";
        other.info.rdma_device = "mlx5_0";
        other.info.mac = other.info.identity.mac = MacAddress{{0x52, 0x54, 0, 0xaa, 0, 2}};
        for (auto& vf : other.vfs)
            vf.pci = PciAddress{0, 2, 0x10, static_cast<std::uint8_t>(vf.index)};
        for (auto& interface : other.interfaces) interface.id.pf = second_pf;
        view.kernel.pfs[second_pf] = other;
        goal.pfs[second_pf].spec.num_vfs = 4;
        goal.pfs[second_pf].spec.labels = {{"rail", "1"}};
        goal.networks["train"].network.pfs.push_back({second_pf, ip("192.168.100.4")});
        spec.pf.reset();
    }
    [[nodiscard]] Result<AttachmentPlan> planned() const { return plan(view, goal, spec); }
    [[nodiscard]] VfId vf() const { return planned().value().attachment.vf; }
    void attach(std::string const& id) { goal = with_attachment(goal, view, id, spec); }
    Pool& pool() {
        spec.network.reset();
        spec.pool = "fast";
        auto& pool = goal.pools["fast"].pool;
        pool.name = "fast";
        return pool;
    }
};

struct Rails : testing::Test, TwoPfs {};

TEST_F(Rails, TheOneWithMostFreeVfsIsChosenAndTheOthersAreExplained) {
    auto const attachment = planned().value().attachment;
    EXPECT_EQ(attachment.vf, (VfId{pf_address, 0}));
    EXPECT_THAT(attachment.candidates, ElementsAre(Candidate{pf_address, true, "has 7 free VFs"},
                                                   Candidate{second_pf, false, "has 4 free VFs"}));
    EXPECT_THAT(planned().value().plan.notes,
                testing::Contains("PF enp1s0 was chosen: none was given"));
    EXPECT_THAT(plan(view, goal, ask()).value().attachment.candidates, IsEmpty())
        << "the request names the PF";
}

TEST_F(Rails, AVmsVfsAreSpread) {
    attach("aaaa0001");
    EXPECT_EQ(vf().pf, second_pf);
    attach("aaaa0002");
    EXPECT_EQ(vf().pf, pf_address);
    spec.vm = "vm2";
    EXPECT_EQ(vf().pf, pf_address) << "it has none yet";
}

TEST_F(Rails, NoAddressIsGivenTwiceOnTwoPfs) {
    attach("aaaa0001");
    attach("aaaa0002");
    EXPECT_NE(goal.attachments["aaaa0001"].vf.pf, goal.attachments["aaaa0002"].vf.pf);
    EXPECT_NE(goal.attachments["aaaa0001"].address, goal.attachments["aaaa0002"].address);
}

TEST_F(Rails, APfWhosePlanIsRefusedIsPassedOver) {
    view.kernel.pfs[pf_address].info.controller = "bond0";
    auto const attachment = planned().value().attachment;
    EXPECT_EQ(attachment.vf.pf, second_pf);
    EXPECT_THAT(attachment.candidates[0].reason, HasSubstr("was refused: enp1s0 is part of bond0"));
}

TEST_F(Rails, ARefusalNamesWhatEachPfLacks) {
    goal.pfs[pf_address].spec.mode = PfMode::observe;
    view.kernel.pfs[second_pf].stale = true;
    view.kernel.pfs[second_pf].stale_reason = "no answer for 60 s";
    auto const error = planned().error();
    EXPECT_EQ(error.problem, Problem::limit_exceeded);
    EXPECT_EQ(
        error.detail,
        "no PF has a VF for VM vm1: 0000:01:00.0 is only observed; 0000:02:00.0 can't be read "
        "now: no answer for 60 s");
    view.kernel.pfs.clear();
    EXPECT_THAT(planned().error().detail, HasSubstr("this host has none"));
}

TEST_F(Rails, APoolSelectsByWhatThePfIs) {
    auto const selects = [&](auto set, bool holds) {
        TwoPfs fresh;
        set(fresh.pool().select);
        auto const planned = fresh.planned();
        EXPECT_EQ(planned ? planned->attachment.vf.pf == second_pf : false, holds)
            << (planned ? "" : planned.error().detail);
    };
    selects([](PoolSelectors& by) { by.drivers = {"mlx5_core"}; }, true);
    selects([](PoolSelectors& by) { by.drivers = {"bnxt_en"}; }, false);
    selects([](PoolSelectors& by) { by.devices = {{0x15b3, 0x101d}}; }, true);
    selects([](PoolSelectors& by) { by.numa_nodes = {0, 1}; }, true);
    selects([](PoolSelectors& by) { by.numa_nodes = {0}; }, false);
    selects([](PoolSelectors& by) { by.link_layers = {LinkLayer::infiniband}; }, false);
    selects([](PoolSelectors& by) { by.pcie_roots = {"pci0000:3a"}; }, true);
    selects([](PoolSelectors& by) { by.labels = {{"rail", "1"}}; }, true);
    selects([](PoolSelectors& by) { by.labels = {{"rail", "0"}}; }, false);
    selects([](PoolSelectors& by) { by.rdma = true; }, true);
    selects([](PoolSelectors& by) { by.pfs = {{second_pf}}; }, true);
    selects([](PoolSelectors& by) { by.pfs = {{second_pf, 8, 9}}; }, false);
}

TEST_F(Rails, APoolHoldsSomeVfsOfAPf) {
    pool().select.pfs = {{pf_address, 5, 6}, {second_pf, 3, 3}};
    EXPECT_EQ(vf(), (VfId{pf_address, 5}));
    attach("aaaa0001");
    EXPECT_EQ(vf(), (VfId{second_pf, 3}));
    attach("aaaa0002");
    EXPECT_EQ(vf(), (VfId{pf_address, 6}));
    attach("aaaa0003");
    EXPECT_THAT(planned().error().detail, HasSubstr("has no free VFs"));
    spec.pf = pf_address;
    EXPECT_EQ(planned().error().detail, "all VFs of pool fast on enp1s0 are in use");
    pool().select.pfs = {{second_pf}};
    spec.pf = pf_address;
    EXPECT_EQ(planned().error().detail, "enp1s0 is not in pool fast: it is not among its PFs");
}

TEST_F(Rails, APoolsDefaultsAreUsedWhereTheRequestIsSilent) {
    auto& defaults = pool().defaults;
    defaults.network = "train";
    defaults.settings.trust = true;
    defaults.settings.max_tx_rate_mbps = 500;
    defaults.verify = VerifyMode::background;
    defaults.verify_profile = Profile::quick;
    spec.settings.max_tx_rate_mbps = 100;
    auto const attachment = planned().value().attachment;
    EXPECT_EQ(attachment.spec.network, "train");
    EXPECT_TRUE(attachment.address);
    EXPECT_EQ(attachment.settings.trust, true);
    EXPECT_EQ(attachment.settings.max_tx_rate_mbps, 100U);
    EXPECT_EQ(attachment.spec.verify, VerifyMode::background);
    EXPECT_EQ(attachment.spec.verify_profile, Profile::quick);
    spec.verify = VerifyMode::none;
    EXPECT_EQ(planned().value().attachment.spec.verify, VerifyMode::none);
    spec.pool = "slow";
    EXPECT_EQ(planned().error().problem, Problem::not_found);
}

TEST_F(Rails, AVerificationNeedsANetworkFromSomewhere) {
    pool();
    spec.verify = VerifyMode::background;
    EXPECT_EQ(planned().error().problem, Problem::invalid_request);
    EXPECT_THAT(planned().error().detail, HasSubstr("pool fast has no network"));
}

// --- reservations -------------------------------------------------------------------------------

ReservationSpec keep(std::uint16_t count, bool distinct = false) {
    ReservationSpec spec;
    spec.network = "train";
    spec.count = count;
    spec.distinct_pfs = distinct;
    return spec;
}

TEST_F(Rails, AReservationKeepsVfsForWhoeverNamesIt) {
    auto const vfs = vfs_to_reserve(view, goal, "job", keep(2, true), "uid:0").value();
    EXPECT_THAT(vfs, ElementsAre(VfId{pf_address, 0}, VfId{second_pf, 0}));
    goal.reservations["job"] = {"job", keep(2, true), vfs, "uid:0", {}, {}};
    EXPECT_EQ(vf(), (VfId{pf_address, 1})) << "others get others";
    spec.network.reset();
    spec.reservation = "job";
    EXPECT_EQ(vf(), (VfId{pf_address, 0}));
    attach("aaaa0001");
    EXPECT_EQ(vf(), (VfId{second_pf, 0}));
    attach("aaaa0002");
    EXPECT_THAT(planned().error().detail, HasSubstr("has no free VFs"));
    EXPECT_THAT(plan_pf(view, goal, second_pf, {PfMode::manage, 2}).error().detail,
                HasSubstr("VF 0 is attached to vm1"));
}

TEST_F(Rails, AReservedVfIsInUse) {
    goal.reservations["job"] = {"job", keep(1), {{second_pf, 2}}, "uid:0", {}, {}};
    EXPECT_EQ(plan_pf(view, goal, second_pf, {PfMode::manage, 2}).error().problem,
              Problem::vf_in_use);
    auto named = ask();
    named.pf = second_pf;
    named.vf = 2;
    EXPECT_THAT(plan(view, goal, named).error().detail, HasSubstr("is reserved as job until"));
    named.reservation = "job";
    EXPECT_TRUE(plan(view, goal, named));
    named.vf = 1;
    EXPECT_TRUE(plan(view, goal, named)) << "it is free anyway";
}

TEST_F(Rails, AReservationIsRefusedWhole) {
    EXPECT_EQ(vfs_to_reserve(view, goal, "job", keep(11), "uid:0").value().size(), 11U);
    EXPECT_THAT(vfs_to_reserve(view, goal, "job", keep(12), "uid:0").error().detail,
                HasSubstr("12 VFs were requested, 11 are free: 0000:01:00.0 has 7 free VFs"));
    EXPECT_FALSE(vfs_to_reserve(view, goal, "job", keep(3, true), "uid:0"));
    goal.reservations["job"] = {"job", keep(11), {}, "uid:0", {}, {}};
    for (std::uint16_t i = 0; i < 7; ++i) goal.reservations["job"].vfs.push_back({pf_address, i});
    EXPECT_TRUE(vfs_to_reserve(view, goal, "job", keep(11), "uid:0")) << "it replaces itself";
    EXPECT_FALSE(vfs_to_reserve(view, goal, "other", keep(5), "uid:0"));
}

TEST_F(Rails, AReservationMaySayOfWhichPfs) {
    auto some = keep(3);
    some.pfs = std::vector<VfsOfPf>{{second_pf, 2}, {pf_address, 1}};
    EXPECT_THAT(vfs_to_reserve(view, goal, "job", some, "uid:0").value(),
                ElementsAre(VfId{pf_address, 0}, VfId{second_pf, 0}, VfId{second_pf, 1}));
    some.pfs = std::vector<VfsOfPf>{{second_pf, 5}};
    some.count = 5;
    auto const refused = vfs_to_reserve(view, goal, "job", some, "uid:0");
    ASSERT_FALSE(refused) << "others are free, but not of that PF";
    EXPECT_THAT(refused.error().detail,
                HasSubstr("5 VFs (5 of " + to_string(second_pf) + ") were requested, 4 are free"));
}

TEST_F(Rails, EachPrincipalHasAShareOfReservations) {
    for (int i = 0; i < 64; ++i) {
        auto const name = fmt::format("r{}", i);
        goal.reservations[name] = {name, keep(1), {}, "token:a", {}, {}};
    }
    EXPECT_EQ(vfs_to_reserve(view, goal, "more", keep(1), "token:a").error().problem,
              Problem::limit_exceeded);
    EXPECT_TRUE(vfs_to_reserve(view, goal, "r7", keep(1), "token:a"));
    EXPECT_TRUE(vfs_to_reserve(view, goal, "more", keep(1), "token:b"));
}

// --- identities ---------------------------------------------------------------------------------

TEST_F(Rails, IdentitiesAreChosenWithinTheHostsRanges) {
    auto& identities = goal.handed_out.identities;
    identities.macs = {{mac(10), mac(11)}};
    identities.addresses = {{"train", {{ip("192.168.100.50"), ip("192.168.100.51")}}}};
    attach("aaaa0001");
    attach("aaaa0002");
    std::set<MacAddress> macs;
    std::set<IpAddress> addresses;
    for (auto const& [id, attachment] : goal.attachments) {
        macs.insert(*attachment.settings.mac);
        addresses.insert(*attachment.address);
    }
    EXPECT_EQ(macs, (std::set{mac(10), mac(11)}));
    EXPECT_EQ(addresses, (std::set{ip("192.168.100.50"), ip("192.168.100.51")}));
    EXPECT_EQ(planned().error().problem, Problem::limit_exceeded);
    spec.settings.mac = mac(12);
    EXPECT_THAT(planned().error().detail, HasSubstr("no free address that this host may hand out"));
    spec.address = ip("192.168.100.60");
    EXPECT_TRUE(planned()) << "a request may name others";
}

TEST_F(Rails, AnAddressIsInTheNetworksRangesAndInTheHosts) {
    goal.networks["train"].network.ranges = {{ip("192.168.100.10"), ip("192.168.100.20")}};
    goal.handed_out.identities.addresses = {
        {"train", {{ip("192.168.100.19"), ip("192.168.100.30")}}}};
    EXPECT_EQ(planned().value().attachment.address, ip("192.168.100.19"));
    goal.handed_out.identities.addresses = {{"plain", {{ip("192.168.50.9"), ip("192.168.50.9")}}}};
    EXPECT_EQ(planned().value().attachment.address, ip("192.168.100.10"));
}

}  // namespace
}  // namespace vfmgr
