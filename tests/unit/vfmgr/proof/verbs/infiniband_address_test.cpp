// SPDX-License-Identifier: Apache-2.0
// How a port of an InfiniBand subnet is reached: by LID, and by GID where that is needed.
#include <gmock/gmock.h>

#include "tests/unit/vfmgr/proof/verbs/subnet.hpp"
#include "vfmgr/rdma/memory.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::verify {
namespace {

using fakes::fabric;
using testing::HasSubstr;

struct Addresses : testing::Test {
    void SetUp() override { plug_in_host_and_vf(); }
    void TearDown() override { EXPECT_EQ(fakes::alive(), 0U); }
    Endpoint endpoint(Guid const& guid, Grh grh = Grh::if_needed) {
        EndpointOptions options;
        options.port_guid = guid;
        options.grh = grh;
        return open_endpoint(options, std::chrono::milliseconds(0)).value();
    }
    ibv_ah_attr address(Grh own, Grh peers) {
        auto const from = endpoint(vf_guid, own), to = endpoint(host_guid, peers);
        return address_of(from, end_of(to)).value();
    }
};

TEST_F(Addresses, NameTheGidOnlyWhereThatIsNeeded) {
    auto const plain = address(Grh::if_needed, Grh::if_needed);
    EXPECT_EQ(plain.is_global, 0);
    EXPECT_EQ(plain.dlid, host_lid);
    EXPECT_EQ(plain.port_num, 2);
    auto const demanded = address(Grh::if_needed, Grh::always);
    EXPECT_EQ(demanded.is_global, 1);
    EXPECT_EQ(demanded.dlid, host_lid);
    EXPECT_EQ(std::to_array(demanded.grh.dgid.raw), gid_at(host_guid));
    EXPECT_EQ(address(Grh::always, Grh::if_needed).is_global, 1);
    fabric().ports[0].grh_required = true;
    EXPECT_EQ(address(Grh::if_needed, Grh::if_needed).is_global, 1);
    fabric().ports[0].grh_required = false;
    fabric().ports[0].lid = vf_lid;
    EXPECT_EQ(address(Grh::if_needed, Grh::if_needed).is_global, 1);
}

TEST_F(Addresses, WithoutGidsReachThePort) {
    for (auto const transport : {Transport::rc, Transport::ud}) {
        auto const host = endpoint(host_guid), vf = endpoint(vf_guid);
        auto pages = RegisteredMemory::make(host.pd.get(), 4096, IBV_ACCESS_LOCAL_WRITE, "arrived");
        auto from = RegisteredMemory::make(vf.pd.get(), 4096, IBV_ACCESS_LOCAL_WRITE, "sent");
        QueuePairOptions const size{.transport = transport, .sends = 2, .receives = 2};
        auto receiver = QueuePair::make(host, size, 0).value();
        auto sender = QueuePair::make(vf, size, 0).value();
        ASSERT_TRUE(receiver.receive(7, pages->sge()));
        ASSERT_TRUE(receiver.connect(host, sender.end()));
        ASSERT_TRUE(sender.connect(vf, receiver.end()));
        ASSERT_TRUE(sender.send(8, from->sge(0, 64)));
        std::array<ibv_wc, 4> room{};
        auto const arrived = receiver.completions().poll(room);
        ASSERT_TRUE(arrived);
        ASSERT_EQ(arrived->size(), 1U);
        bool const datagram = transport == Transport::ud;
        EXPECT_EQ((*arrived)[0].byte_len, datagram ? ud_header_bytes + 64 : 64U);
        EXPECT_EQ((*arrived)[0].wc_flags & IBV_WC_GRH, 0U);
        EXPECT_EQ((*arrived)[0].slid, datagram ? vf_lid : 0U);
        auto const until = std::chrono::steady_clock::now() + drain_wait;
        receiver.shut(until);
        sender.shut(until);
    }
    EXPECT_EQ(fabric().without_grh, 2U);
    EXPECT_EQ(fabric().with_grh, 0U);
}

TEST_F(Addresses, OfAnotherLinkLayerAreRefused) {
    auto const own = endpoint(vf_guid);
    QueuePairEnd peer;
    peer.gid = gid_hex(gid_at(host_guid));
    auto const refused = address_of(own, peer);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("is on Ethernet, and this port on InfiniBand"));
}

}  // namespace
}  // namespace vfmgr::verify
