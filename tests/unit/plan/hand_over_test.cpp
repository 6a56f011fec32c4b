// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

// vm1's lease of VF 2, with a MAC and a VLAN.
Attachment lease() {
    Attachment ended;
    ended.id = "aaaa0001";
    ended.vm_name = "vm1";
    ended.vf = {pf_address, 2};
    ended.settings.mac = mac(7);
    ended.settings.vlan = Vlan{100, 0, VlanProtocol::dot1q};
    ended.baseline.mac = MacAddress{};
    ended.baseline.vlan = Vlan{};
    return ended;
}

struct After {
    HostView view = host();
    PfState& pf = view.kernel.pfs.at(pf_address);
    VfState& vf = pf.vfs.at(2);
    [[nodiscard]] HandOver see(Attachment const& ended = lease()) const {
        return hand_over(view, ended);
    }
    [[nodiscard]] std::string only_residue(Attachment const& ended = lease()) const {
        auto const [residue, certificate] = see(ended);
        EXPECT_FALSE(certificate);
        return residue.size() == 1 ? residue[0] : std::to_string(residue.size()) + " sentences";
    }
};

TEST(HandOver, CertifiesAVfThatIsAsItWas) {
    After after;
    after.pf.observed_at = Time(std::chrono::milliseconds(7));
    auto const [residue, certificate] = after.see();
    EXPECT_THAT(residue, IsEmpty());
    EXPECT_EQ(certificate, (Certificate{{pf_address, 2},
                                        after.vf.pci,
                                        "aaaa0001",
                                        "vm1",
                                        after.vf.settings,
                                        std::nullopt,
                                        after.pf.observed_at}));
}

TEST(HandOver, NamesWhatIsStillSet) {
    After after;
    after.vf.settings.mac = mac(7);
    EXPECT_EQ(after.only_residue(),
              "still to do: configure on 0000:01:00.0: VF 2 (mac 00:00:00:00:00:00)");
}

TEST(HandOver, WhatWasNeverLentIsNotLookedAt) {
    After after;
    after.vf.settings.trust = true;
    EXPECT_TRUE(after.see().certificate);
}

TEST(HandOver, NamesWhoHoldsIt) {
    After after;
    after.vf.holders = {{812, "qemu-system-x86"}};
    EXPECT_THAT(after.only_residue(), HasSubstr("held open by qemu-system-x86 (pid 812)"));
}

TEST(HandOver, AHostsDriverMayChooseAnAddressButNotTheLentOne) {
    After after;
    after.vf.settings.mac = mac(9);
    EXPECT_FALSE(after.see().certificate) << "nobody chose it";
    after.vf.driver = "vfio-pci";
    EXPECT_FALSE(after.see().certificate);
    after.vf.driver = "igbvf";
    EXPECT_TRUE(after.see().certificate);
    after.vf.settings.mac = mac(7);
    EXPECT_FALSE(after.see().certificate);
}

TEST(HandOver, TheStandInForTheZeroMacIsZero) {
    After after;
    after.vf.settings.mac = MacAddress{{2, 0, 0, 0, 0, 0}};
    EXPECT_TRUE(after.see().certificate);
}

TEST(HandOver, AVfThatIsGoneIsCleanUnlessItsGuidsReturn) {
    After after;
    auto ended = lease();
    ended.vf.index = 9;
    EXPECT_THAT(after.see(ended).residue, IsEmpty());
    EXPECT_FALSE(after.see(ended).certificate);
    ended.baseline.node_guid = Guid{};
    EXPECT_THAT(after.only_residue(ended), HasSubstr("gets its GUIDs"));
}

TEST(HandOver, NotSeenIsNotClean) {
    After after;
    after.pf.stale = true;
    after.pf.stale_reason = "the worker hangs";
    EXPECT_EQ(after.only_residue(), "VF 0000:01:00.0/2 can't be looked at: the worker hangs");
    after.view.kernel.pfs.clear();
    EXPECT_THAT(after.only_residue(), HasSubstr("its PF is gone"));
}

}  // namespace
}  // namespace vfmgr
