// SPDX-License-Identifier: Apache-2.0
// A report's statement about the tested traffic class. Whether the run passed does not matter here.
#include <gmock/gmock.h>

#include "vfmgr/proof/host/judge.hpp"

namespace vfmgr::verify {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

struct JudgeDscp : testing::Test {
    SessionPermit permit;  // the network's
    SessionFacts facts;    // the host's queue pair's
    GuestReport report;    // the VM's statement about its own

    void SetUp() override {
        permit.dscp = 26;
        facts.dscp = 26;
        report.facts["dscp"] = "26";
    }
    [[nodiscard]] Verification verdict() const { return judge(permit, facts, report); }
};

TEST_F(JudgeDscp, IsNamedWhereBothEndsSentWithIt) {
    EXPECT_EQ(verdict().dscp, 26);
    EXPECT_THAT(verdict().warnings, IsEmpty());
}

TEST_F(JudgeDscp, IsNotNamedWhereTheNetworkHasNone) {
    permit.dscp.reset();
    facts.dscp = 0;
    EXPECT_EQ(verdict().dscp, std::nullopt);
    EXPECT_THAT(verdict().warnings, IsEmpty());
}

TEST_F(JudgeDscp, IsNotNamedWhereRdmaWasNotTested) {
    permit.rdma = RdmaMode::none;
    report.facts.clear();
    EXPECT_EQ(verdict().dscp, std::nullopt);
    EXPECT_THAT(verdict().warnings, IsEmpty());
}

TEST_F(JudgeDscp, IsTheOneThatWasSentAndNotTheOneThatWasAskedFor) {
    facts.dscp = 0;
    EXPECT_EQ(verdict().dscp, 0);
    ASSERT_THAT(verdict().warnings, SizeIs(1));
    EXPECT_THAT(verdict().warnings[0].detail,
                StartsWith("the host's queue pair sent with DSCP 0, but the network's is 26"));
}

TEST_F(JudgeDscp, OfAGuestThatSentWithAnotherIsAWarning) {
    report.facts["dscp"] = "0\x1b[2J";
    ASSERT_THAT(verdict().warnings, SizeIs(1));
    EXPECT_THAT(verdict().warnings[0].detail,
                HasSubstr("the VM's queue pair sent with DSCP 0?[2J, but the network's is 26"));
    report.facts.erase("dscp");
    EXPECT_THAT(verdict().warnings.at(0).detail, HasSubstr("DSCP 0 or an unreported one"));
    EXPECT_EQ(verdict().dscp, 26) << "of the host's own end";
}

}  // namespace
}  // namespace vfmgr::verify
