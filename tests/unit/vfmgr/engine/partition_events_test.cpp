// SPDX-License-Identifier: Apache-2.0
// Which changes of the desired state change what an InfiniBand subnet manager needs.
#include <gmock/gmock.h>

#include "vfmgr/engine/recorder.hpp"

namespace vfmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto needed =
    "a1: the subnet manager needs the line vfmgr-0001=0x0001,indx0,ipoib:0x0202c9fffe110002=full;";
constexpr auto no_longer =
    "a1: the subnet manager no longer needs the line "
    "vfmgr-0001=0x0001,indx0,ipoib:0x0202c9fffe110002=full;";

struct PartitionEvents : testing::Test {
    DesiredState before;
    Network network;
    Attachment attachment;

    PartitionEvents() {
        network.name = "blue";
        network.pkey = Pkey{1, PkeyMembership::full};
        before.networks["blue"] = {network};
        attachment.id = "a1";
        attachment.vm = "db1";
        attachment.vm_uuid = "u1";
        attachment.spec.network = "blue";
        attachment.settings.port_guid = Guid{0x0202'c9ff'fe11'0002};
        attachment.state = AttachmentState::attaching;
    }
    [[nodiscard]] std::vector<std::string> of(Batch const& batch) const {
        std::vector<std::string> texts;
        for (auto const& event : Recorder({}, before).events_of(batch, before, Time{}))
            if (event.kind == EventKind::partition_changed) {
                EXPECT_EQ(event.network, "blue");
                texts.push_back(event.attachment.value_or("-") + ": " + event.detail);
            }
        return texts;
    }
    [[nodiscard]] std::vector<std::string> saved() const {
        Batch batch;
        batch.save_attachments.push_back(attachment);
        return of(batch);
    }
};

TEST_F(PartitionEvents, AnAttachNeedsALineAndADetachNoLonger) {
    EXPECT_THAT(saved(), ElementsAre(needed));
    before.attachments["a1"] = attachment;
    attachment.state = AttachmentState::attached;
    EXPECT_THAT(saved(), IsEmpty()) << "it has the line already";
    Batch end;
    end.erase_attachments = {"a1"};
    EXPECT_THAT(of(end), ElementsAre(no_longer));
}

TEST_F(PartitionEvents, AnotherGuidNeedsAnotherLine) {
    before.attachments["a1"] = attachment;
    attachment.settings.port_guid = Guid{0x0202'c9ff'fe11'0003};
    EXPECT_THAT(saved(), ElementsAre(no_longer, testing::HasSubstr("0x0202c9fffe110003=full;")));
}

TEST_F(PartitionEvents, OthersNeedNone) {
    attachment.settings.port_guid.reset();
    EXPECT_THAT(saved(), IsEmpty()) << "Ethernet";
    attachment.settings.port_guid = Guid{0x0202'c9ff'fe11'0002};
    before.networks["blue"].network.pkey.reset();
    EXPECT_THAT(saved(), IsEmpty()) << "any partition will do";
    attachment.spec.network.reset();
    EXPECT_THAT(saved(), IsEmpty());
}

TEST_F(PartitionEvents, ANetworksOwnLinesAreThoseOfItsPfs) {
    auto const changed = [&] {
        Batch batch;
        batch.save_networks.push_back({network});
        return of(batch);
    };
    network.mtu = 2044;
    EXPECT_THAT(changed(), IsEmpty());
    constexpr auto lines =
        "-: the lines that network blue needs of the subnet manager have changed: vfctl ib "
        "partitions";
    network.pfs = {{*PciAddress::parse("0000:01:00.0"), *IpAddress::parse("10.0.0.1")}};
    EXPECT_THAT(changed(), ElementsAre(lines));
    before.networks.clear();
    EXPECT_THAT(changed(), ElementsAre(lines));
    network.pkey.reset();
    EXPECT_THAT(changed(), IsEmpty()) << "Ethernet";
}

}  // namespace
}  // namespace vfmgr
