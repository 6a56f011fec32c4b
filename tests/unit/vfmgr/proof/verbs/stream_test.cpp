// SPDX-License-Identifier: Apache-2.0
// Both ends of a stream over an in-process device: the attributes of their queue pairs and their
// memory.
#include <gmock/gmock.h>

#include "tests/fakes/verbs/fabric.hpp"
#include "vfmgr/proof/guest_stream.hpp"
#include "vfmgr/proof/host/host_stream.hpp"

namespace vfmgr::verify {
namespace {

using fakes::fabric;
using std::chrono::milliseconds;
using testing::Each;
using testing::SizeIs;

constexpr std::uint32_t rxe_vendor = 0xffffff, siw_vendor = 0x626d74, mellanox = 0x02c9;

struct Streams : testing::Test {
    IpAddress const host_address = *IpAddress::parse("10.0.0.1");
    IpAddress const guest_address = *IpAddress::parse("10.0.0.2");
    std::optional<std::uint8_t> dscp;  // the network's
    std::optional<Endpoint> endpoint;  // outlives the guest's stream
    std::unique_ptr<HostStream> at_host;

    void SetUp() override { fakes::plug_in({host_address.gid(), guest_address.gid()}); }
    void TearDown() override {
        at_host.reset();
        endpoint.reset();
        EXPECT_EQ(fakes::alive(), 0U) << "something was not destroyed, or before its time";
    }

    SessionPermit permit() const {
        SessionPermit permit;
        permit.host_address = host_address;
        permit.peer_address = guest_address;
        permit.dscp = dscp;
        return permit;
    }
    Result<StreamOffer> open_at_host(StreamRequest const& request) {
        VFMGR_TRY(at_host, HostStream::open(permit(), request, {}));
        return at_host->offer();
    }
    Result<GuestStream> open(StreamKind kind, StreamSize const& size = {64, 4, 2}) {
        VFMGR_TRY(endpoint, open_endpoint({guest_address, "", dscp.value_or(0)}, milliseconds(0)));
        return GuestStream::open({[this](auto const& request) { return open_at_host(request); },
                                  [this](std::string const&) { at_host.reset(); }},
                                 *endpoint, kind, size);
    }
    static std::vector<int> timeouts() {
        std::vector<int> all;
        for (auto const& each : fakes::objects().pairs) all.push_back(each.timeout);
        return all;
    }
    static std::vector<bool> relaxed() {
        std::vector<bool> all;
        for (auto const& each : fakes::objects().regions)
            all.push_back((each.access & IBV_ACCESS_RELAXED_ORDERING) != 0);
        return all;
    }
};

// A lost packet stalls hardware for 67 ms; software needs longer to acknowledge at all.
TEST_F(Streams, WaitForAnAcknowledgementAsLongAsTheDeviceNeeds) {
    for (auto const& [vendor, timeout] :
         {std::pair(mellanox, 14), {0x8086U, 14}, {rxe_vendor, 18}, {siw_vendor, 18}}) {
        fabric().vendor_id = vendor;
        auto const stream = open(StreamKind::one_sided);
        ASSERT_TRUE(stream) << stream.error().detail;
        EXPECT_THAT(timeouts(), testing::AllOf(SizeIs(4), Each(timeout))) << vendor;
    }
}

// The bus may reorder writes that only a completion announces.
TEST_F(Streams, OfBandwidthRelaxTheOrderOfWrites) {
    for (auto const kind : {StreamKind::one_sided, StreamKind::send}) {
        auto const stream = open(kind);
        ASSERT_TRUE(stream) << stream.error().detail;
        // The guest's messages and answers, then the host's.
        EXPECT_EQ(relaxed(), (std::vector{true, false, true, false})) << enum_name(kind);
    }
}

// There the last byte announces that the others have arrived.
TEST_F(Streams, ThatAreAnsweredKeepTheOrderOfWrites) {
    for (auto const kind : {StreamKind::write_echo, StreamKind::send_echo, StreamKind::ud_echo}) {
        auto const stream = open(kind, {64, 4, 1});
        ASSERT_TRUE(stream) << stream.error().detail;
        EXPECT_THAT(relaxed(), testing::AllOf(SizeIs(4), Each(false))) << enum_name(kind);
    }
}

// Covers queue pairs and datagrams' address handles, at both ends.
TEST_F(Streams, SendInTheNetworksClassOfTraffic) {
    for (auto const kind : {StreamKind::one_sided, StreamKind::ud_echo}) {
        for (auto const& [expected, traffic_class, level] :
             {std::tuple(std::optional<std::uint8_t>(), 0U, 0U),
              {26, 26U << 2U, 3U},
              {63, 63U << 2U, 7U}}) {
            fabric().classes.clear();
            dscp = expected;
            auto const stream = open(kind, {64, 4, 1});
            ASSERT_TRUE(stream) << stream.error().detail;
            EXPECT_THAT(fabric().classes, testing::ElementsAre(std::pair(traffic_class, level)))
                << enum_name(kind);
        }
    }
}

}  // namespace
}  // namespace vfmgr::verify
