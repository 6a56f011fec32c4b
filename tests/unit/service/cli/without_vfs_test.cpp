// SPDX-License-Identifier: Apache-2.0
#include "service/cli/without_vfs.hpp"

#include <gmock/gmock.h>

namespace vfmgr {
namespace {

using testing::HasSubstr;

Attachment attached() {
    Attachment one;
    one.id = "aaaa0001";
    one.vf = {{0, 1, 0, 0}, 3};
    one.vm_uuid = "11111111-1111-1111-1111-111111111111";
    one.vm = "vm1";
    one.spec.vm = "vm1";
    one.spec.network = "train";
    one.spec.vf = 3;
    one.spec.reservation = "job";
    one.settings.mac = MacAddress{{2, 0, 0, 0, 0, 1}};
    one.settings.vlan = Vlan{100};
    one.address = IpAddress::parse("192.168.100.10").value();
    return one;
}

AttachmentSpec again(Attachment const& attachment, SamePfs same = SamePfs::yes, bool runs = true) {
    return specs_again({attachment}, same, runs).value().at(0);
}

TEST(SpecsAgain, KeepWhatTheVmKnowsItsVfBy) {
    auto const spec = again(attached());
    EXPECT_EQ(spec.vm, attached().vm_uuid) << "the name may change meanwhile";
    EXPECT_EQ(spec.settings.mac, attached().settings.mac);
    EXPECT_EQ(spec.address, attached().address);
    EXPECT_EQ(spec.pf, attached().vf.pf);
}

TEST(SpecsAgain, LeaveOutWhatTheHostChooses) {
    auto const spec = again(attached());
    EXPECT_FALSE(spec.vf);
    EXPECT_FALSE(spec.reservation);
    EXPECT_FALSE(spec.settings.vlan) << "the network's, which may have another one elsewhere";
    EXPECT_FALSE(again(attached(), SamePfs::no).pf);
}

TEST(SpecsAgain, ProveAgainWhatWasProved) {
    EXPECT_FALSE(again(attached()).verify);
    auto one = attached();
    one.verification.emplace();
    EXPECT_EQ(again(one).verify, VerifyMode::required);
    EXPECT_EQ(again(one, SamePfs::yes, false).verify, VerifyMode::background) << "it does not run";
}

TEST(SpecsAgain, NeedANetworkOrAPoolOnAnotherHost) {
    auto one = attached();
    one.spec.network.reset();
    EXPECT_THAT(specs_again({one}, SamePfs::no, true).error().detail, HasSubstr("aaaa0001"));
    EXPECT_TRUE(specs_again({one}, SamePfs::yes, true));
}

TEST(SpecsAgain, TakeWhatTheOtherHostReserved) {
    auto one = attached();
    one.spec.pool = "rails";
    std::vector specs{again(one, SamePfs::no)};
    use_reservation(specs, "arriving");
    EXPECT_EQ(specs.at(0).reservation, "arriving");
    EXPECT_FALSE(specs.at(0).pool) << "the reservation's";
    EXPECT_EQ(specs.at(0).network, one.spec.network);
    EXPECT_EQ(specs.at(0).address, one.address);
}

}  // namespace
}  // namespace vfmgr
