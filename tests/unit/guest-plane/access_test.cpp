// SPDX-License-Identifier: Apache-2.0
#include "service/guest/access.hpp"

#include <gtest/gtest.h>

namespace vfmgr {
namespace {

PciAddress const pf{0, 1, 0, 0};

// A VF lent with a VLAN and trust, and what the host reports of it.
struct Lent {
    VfSpec found;
    Verification verification;

    Lent() {
        found.vlan = Vlan{100, 0, VlanProtocol::dot1q};
        found.trust = true;
        found.mac = MacAddress::parse("52:54:00:11:22:33").value();
        verification.attachment = "a1";
        verification.verdict = Verdict::fail;
        verification.detail = "reachability: no datagram came";
        verification.remedy = "check the VF";
    }
    [[nodiscard]] Verification explained() const {
        Attachment lease;
        lease.id = "a1";
        lease.vf = {pf, 3};
        lease.settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
        lease.settings.trust = true;
        lease.settings.mac = found.mac;
        auto desired = std::make_shared<DesiredState>();
        desired->attachments["a1"] = lease;
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
    Lent lent;
    lent.found.vlan->id = 200;
    auto const shown = lent.explained();
    EXPECT_EQ(shown.detail,
              "reachability: no datagram came; on the host VF 3 of 0000:01:00.0 has vlan 200 qos 0 "
              "802.1q, and was lent with vlan 100 qos 0 802.1q");
    EXPECT_NE(shown.remedy.find("detach attachment a1"), std::string::npos);
}

TEST(ExplainFailure, SaysNothingWhereThereIsNothingToSay) {
    Lent unchanged;
    EXPECT_EQ(unchanged.explained(), unchanged.verification);
    Lent silent;  // a driver that reports no trust
    silent.found.trust.reset();
    EXPECT_EQ(silent.explained(), silent.verification);
    Lent passed;
    passed.found.vlan->id = 200;
    passed.verification.verdict = Verdict::pass;
    EXPECT_EQ(passed.explained(), passed.verification);
    Lent gone;
    gone.verification.attachment = "a2";
    EXPECT_EQ(gone.explained(), gone.verification);
}

}  // namespace
}  // namespace vfmgr
