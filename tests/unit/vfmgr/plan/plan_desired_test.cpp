// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/plan_desired.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct PlanDesiredTest : testing::Test {
    HostView view = host();
    DesiredState goal = example::desired();
    TrustedNetdevs trusted{"bond0"};
    DesiredDocument document;

    PlanDesiredTest() {
        goal.pools["fast"].pool.name = "fast";
        goal.pools["fast"].pool.defaults.network = "train";
        document = document_of(goal);
    }
    [[nodiscard]] Result<DesiredPlan> planned(Unnamed unnamed = Unnamed::keep) const {
        return plan_desired(view, goal, trusted, document, unnamed);
    }
    [[nodiscard]] DesiredPlan accepted(Unnamed unnamed = Unnamed::keep) const {
        auto plan = planned(unnamed);
        EXPECT_TRUE(plan) << plan.error().detail;
        return plan.value_or(DesiredPlan{});
    }
    [[nodiscard]] std::vector<std::string> sentences(Unnamed unnamed = Unnamed::keep) const {
        std::vector<std::string> all;
        for (auto const& change : accepted(unnamed).changes) all.push_back(change.sentence);
        return all;
    }
};

TEST_F(PlanDesiredTest, ItsOwnDocumentChangesNothing) {
    for (auto const unnamed : {Unnamed::keep, Unnamed::remove}) {
        auto const plan = accepted(unnamed);
        EXPECT_THAT(plan.changes, IsEmpty());
        EXPECT_THAT(plan.plan.steps, IsEmpty());
        EXPECT_EQ(plan.after, goal);
    }
    document = {};
    EXPECT_EQ(accepted().after, goal) << "what is not named is kept";
    EXPECT_EQ(revision_of(document_of(goal)), revision_of(document_of(goal)));
    EXPECT_NE(revision_of(document_of(goal)), revision_of(document));
}

TEST_F(PlanDesiredTest, SaysWhatChanges) {
    auto& network = document.networks["train"];
    network.mtu = 4200;
    network.ranges = {{ip("192.168.100.10"), ip("192.168.100.20")}};
    document.pfs["0000:01:00.0"].labels["rail"] = "1";
    document.pools["slow"] = {};
    EXPECT_THAT(
        sentences(),
        ElementsAre("network train: mtu becomes 4200 (now 9000)",
                    R"(network train: ranges becomes ["192.168.100.10-192.168.100.20"] (now []))",
                    R"(PF 0000:01:00.0: labels/rail is new: 1)",
                    testing::StartsWith("pool slow is new: {")));
    auto const changes = accepted().changes;
    EXPECT_EQ(changes[0].pointer, "/networks/train/mtu");
    EXPECT_EQ(changes[0].now, "9000");
    EXPECT_EQ(changes[0].then, "4200");
    EXPECT_EQ(accepted().after.networks.at("train").network.name, "train");
    EXPECT_EQ(accepted().after.networks.at("train").revision, goal.networks.at("train").revision);
}

TEST_F(PlanDesiredTest, NamesInsideAreTheKeys) {
    document.networks["train"].name = "train";
    EXPECT_THAT(accepted().changes, IsEmpty());
}

TEST_F(PlanDesiredTest, PrunesWhatIsNotNamed) {
    document = {};
    goal.handed_out.identities.macs = {{mac(1), mac(9)}};
    goal.rdma_links["rxe0"].link = {"rxe0", SoftRdmaType::rxe, "bond0"};
    view.kernel.network.emplace();
    auto const after = accepted(Unnamed::remove).after;
    EXPECT_EQ(document_of(after), (DesiredDocument{{}, {}, {}, {}, Identities{}}));
    EXPECT_THAT(sentences(Unnamed::remove), testing::Contains(HasSubstr("pool fast is removed")));
}

TEST_F(PlanDesiredTest, PrunesNothingThatIsUsed) {
    goal = with_attachment(goal, view, "aaaa0001", ask());
    document = document_of(goal);
    document.pfs.clear();
    EXPECT_THAT(planned(Unnamed::remove).error().remedy, HasSubstr("vfctl detach aaaa0001"));
    document = document_of(goal);
    document.networks.erase("train");
    document.pools.clear();
    EXPECT_THAT(planned(Unnamed::remove).error().detail, HasSubstr("network train is used"));
}

// A pool may leave a network in the document in which the network goes.
TEST_F(PlanDesiredTest, ANetworkGoesWithTheDefaultOfItsPool) {
    document.networks.erase("train");
    EXPECT_THAT(planned(Unnamed::remove).error().detail, HasSubstr("the default of pool fast"));
    document.pools["fast"].defaults.network.reset();
    EXPECT_FALSE(accepted(Unnamed::remove).after.networks.contains("train"));
    document.pools["fast"].defaults.network = "new";
    document.networks["new"] = train();
    EXPECT_EQ(accepted(Unnamed::remove).after.pools.at("fast").pool.defaults.network, "new")
        << "it may have the prefix of the one that goes";
}

TEST_F(PlanDesiredTest, RefusesWhatAnyPartRefuses) {
    document.pfs["0000:01:00.0"].num_vfs = 200;
    EXPECT_EQ(planned().error().problem, Problem::limit_exceeded);
    document = document_of(goal);
    document.pools["fast"].defaults.network = "none";
    EXPECT_EQ(planned().error().problem, Problem::not_found);
    document = document_of(goal);
    document.rdma_links["rxe0"] = {SoftRdmaType::rxe, "eth0"};
    view.kernel.network.emplace();
    EXPECT_EQ(planned().error().problem, Problem::forbidden) << "eth0 is not trusted";
}

TEST_F(PlanDesiredTest, StepsAreThoseOfThePfs) {
    document.pfs["0000:01:00.0"].num_vfs = 3;
    auto const plan = accepted().plan;
    EXPECT_EQ(steps_of<SetNumVfs>(plan), (std::vector<SetNumVfs>{{pf_address, 3}}));
    EXPECT_THAT(plan.blast_radius, ElementsAre(HasSubstr("all 7 VFs of enp1s0 are removed")));
}

TEST_F(PlanDesiredTest, AnAbsentPfIsAnErrorOnlyIfItChanges) {
    goal.pfs[second_pf] = {{PfMode::manage, 4}, 3, {}};
    document = document_of(goal);
    EXPECT_THAT(accepted().changes, IsEmpty());
    EXPECT_THAT(accepted().plan.notes, ElementsAre(HasSubstr("0000:02:00.0 is as desired")));
    document.pfs["0000:02:00.0"].num_vfs = 5;
    EXPECT_FALSE(planned());
}

// Drift of what is managed is in the plan, though nothing of the document changes.
TEST_F(PlanDesiredTest, ThePlanBringsBackWhatDrifted) {
    goal.pfs[pf_address].spec.num_vfs = 5;
    document = document_of(goal);
    EXPECT_THAT(accepted().changes, IsEmpty());
    EXPECT_EQ(steps_of<SetNumVfs>(accepted().plan), (std::vector<SetNumVfs>{{pf_address, 5}}));
    document.pfs.clear();
    EXPECT_THAT(accepted().plan.steps, IsEmpty()) << "a PF that is not named stays as it is";
}

}  // namespace
}  // namespace vfmgr
