// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/placement/summaries.hpp"

#include <gtest/gtest.h>

#include "tests/unit/service/fleet/placement/placed_host.hpp"

namespace vfmgr::fleet {
namespace {

using tests::PlacedHost;

PciAddress pci(int bus) {
    return PciAddress::parse(tests::pci_text(bus)).value();
}

TEST(Summary, CountsWhatIsFreeAndInNoReservation) {
    PlacedHost host("h1");
    host.put(Collection::pfs, {tests::pf_text(1, {tests::vf_text(1, 0), tests::vf_text(1, 1),
                                                  tests::vf_text(1, 2, "attached", "a", "vm1")}),
                               tests::pf_text(2, {tests::vf_text(2, 0)})});
    host.put(Collection::reservations, {tests::reservation_text("job", {{1, 1}})});
    auto const summary = summary_of(host.part, host.record);
    EXPECT_EQ(summary.name, "h1");
    EXPECT_EQ(summary.vfs, 4U);
    EXPECT_EQ(summary.used, 2U);
    ASSERT_EQ(summary.rails.size(), 2U);
    EXPECT_EQ(summary.rails[0].place.address, pci(1));
    EXPECT_EQ(summary.rails[0].rail, "1");
    EXPECT_EQ(summary.rails[0].free_vfs, 1);
    EXPECT_TRUE(summary.rails[0].link_up);
    EXPECT_EQ(summary.rails[0].networks, std::vector<std::string>{"blue"});
    EXPECT_EQ(summary.state, HostState::active);
    EXPECT_FALSE(summary.stale);
    EXPECT_FALSE(summary.left.macs) << "the host chooses freely";
}

TEST(Summary, HasThePoolsThatSelectThePfAndTheVf) {
    PlacedHost host("h1");
    host.put(Collection::pfs, {tests::pf_text(1, {tests::vf_text(1, 0), tests::vf_text(1, 1)})});
    host.put(
        Collection::pools,
        {R"({"name":"first","select":{"pfs":["0000:01:00.0/0-0"]},"new":1})",
         R"({"name":"label","select":{"labels":{"rail":"1"},"drivers":["mlx5_core"]}})",
         R"({"name":"other","select":{"labels":{"rail":"2"}}})", R"({"name":"odd","select":7})"});
    auto const summary = summary_of(host.part, host.record);
    ASSERT_EQ(summary.rails.size(), 1U);
    EXPECT_EQ(summary.rails[0].pools, (std::vector<PoolPart>{{"first", 1}, {"label", 2}}));
}

TEST(Summary, OfAPfThatGivesNoVfsHasNone) {
    PlacedHost host("h1");
    auto stuck = tests::pf_text(1, {tests::vf_text(1, 0)});
    stuck.replace(stuck.find(R"("stuck":null)"), 12, R"("stuck":"a call hangs")");
    auto seen = tests::pf_text(2, {tests::vf_text(2, 0)});
    seen.replace(seen.find(R"("mode":"manage")"), 15, R"("mode":"observe")");
    host.put(Collection::pfs, {stuck, seen});
    auto const summary = summary_of(host.part, host.record);
    EXPECT_TRUE(summary.rails.empty());
    EXPECT_EQ(summary.vfs, 1U) << "those of the PF that is only observed are not the fleet's";
    EXPECT_EQ(summary.used, 1U);
}

TEST(Summary, SaysHowManyIdentitiesAreLeft) {
    PlacedHost host("h1");
    put_item(host.part.documents, Collection::identities, "", tests::example("identities_view"), {},
             tests::at(1));
    auto const left = summary_of(host.part, host.record).left;
    EXPECT_EQ(left.macs, 254U);
    EXPECT_EQ(left.guids, 256U);
    EXPECT_EQ(left.addresses.at("lab"), 88U);
}

TEST(Summary, StatesWhatMattersMost) {
    PlacedHost host("h1");
    auto const state = [&] { return summary_of(host.part, host.record).state; };
    host.record.cordoned = Statement{tests::at(5), "uid:0", "a fan"};
    EXPECT_EQ(state(), HostState::cordoned);
    EXPECT_EQ(summary_of(host.part, host.record).state_reason, "uid:0: a fan");
    host.part.stale = Stale{tests::at(7), StaleWhy::catching_up};
    EXPECT_TRUE(summary_of(host.part, host.record).stale);
    host.part.stale = Stale{tests::at(7), StaleWhy::unreachable};
    EXPECT_EQ(state(), HostState::unreachable);
    EXPECT_EQ(summary_of(host.part, host.record).as_of, tests::at(7));
    host.record.state = FleetHostState::quarantined;
    EXPECT_EQ(state(), HostState::quarantined);
    host.record.fenced = Statement{tests::at(9), "uid:0", "pdu7"};
    EXPECT_EQ(state(), HostState::fenced);
}

TEST(Summary, OfAHostThatWasNeverReadIsStale) {
    HostPart part;
    part.host.name = "h1";
    EXPECT_TRUE(summary_of(part, {}).stale);
}

TEST(Summaries, AreMadeAgainOnlyWhereSomethingChanged) {
    Inventory inventory;
    State state;
    auto hosts = std::make_shared<Records<HostRecord>>();
    for (auto const* const name : {"h1", "h2", "h3"}) {
        inventory.put_host({name, 1}, tests::at(1));
        (*hosts)[name] = {{}, {}, 5, 5};
    }
    state.hosts = hosts;
    inventory.publish();
    Summaries summaries;
    EXPECT_EQ(summaries.of(*inventory.snapshot(), state).size(), 3U);
    EXPECT_EQ(summaries.made(), 3U);
    EXPECT_EQ(summaries.of(*inventory.snapshot(), state).size(), 3U);
    EXPECT_EQ(summaries.made(), 3U);
    inventory.put_stale("h2", Stale{tests::at(2)});
    inventory.publish();
    EXPECT_EQ(summaries.of(*inventory.snapshot(), state)[1]->stale, true);
    EXPECT_EQ(summaries.made(), 4U);
    auto changed = std::make_shared<Records<HostRecord>>(*hosts);
    (*changed)["h1"].record.rack = "r1";
    (*changed)["h1"].mod_revision = 6;
    changed->erase("h3");
    state.hosts = changed;
    auto const now = summaries.of(*inventory.snapshot(), state);
    ASSERT_EQ(now.size(), 2U);
    EXPECT_EQ(now[0]->rack, "r1");
    EXPECT_EQ(summaries.made(), 5U);
}

}  // namespace
}  // namespace vfmgr::fleet
