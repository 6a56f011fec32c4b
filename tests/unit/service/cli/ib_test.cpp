// SPDX-License-Identifier: Apache-2.0
#include "service/cli/ib.hpp"

#include <gmock/gmock.h>

namespace vfmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Partitions : testing::Test {
    Network network;
    PfView pf;
    Attachment attachment;

    Partitions() {
        network.name = "blue";
        network.mtu = 4092;
        network.pkey = Pkey{1, PkeyMembership::limited};
        pf.pf.info.pci = *PciAddress::parse("0000:01:00.0");
        pf.pf.info.ifname = "ibp1s0";
        pf.pf.info.port_guid = Guid{0x0002'c9ff'fe11'0001};
        network.pfs = {{pf.pf.info.pci, *IpAddress::parse("10.0.0.1")}};
        attachment.vm = "db1";
        attachment.spec.network = "blue";
        attachment.settings.port_guid = Guid{0x0202'c9ff'fe11'0002};
    }
    [[nodiscard]] std::vector<std::string> lines() const {
        std::vector<std::string> texts;
        for (auto const& each : partition_lines({network}, {pf}, {attachment}))
            texts.push_back(each.of + ": " + each.line);
        return texts;
    }
};

TEST_F(Partitions, HaveTheHostAsAFullMemberAndTheVfsAsTheNetworkSays) {
    EXPECT_THAT(
        lines(),
        ElementsAre("PF ibp1s0: vfmgr-0001=0x0001,indx0,ipoib,mtu=5:0x0002c9fffe110001=full;",
                    "VM db1: vfmgr-0001=0x0001,indx0,ipoib,mtu=5:0x0202c9fffe110002=limited;"));
}

TEST_F(Partitions, AreOfNetworksWithAPkeyOnly) {
    network.pkey.reset();
    EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(Partitions, LeaveOutWhatIsElsewhereOrUnknown) {
    pf.pf.info.port_guid.reset();
    attachment.spec.network = "red";
    EXPECT_THAT(lines(), IsEmpty());
    attachment.spec.network = "blue";
    attachment.settings.port_guid.reset();
    EXPECT_THAT(lines(), IsEmpty());
}

}  // namespace
}  // namespace vfmgr
