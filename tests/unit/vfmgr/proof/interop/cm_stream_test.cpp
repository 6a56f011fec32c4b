// SPDX-License-Identifier: Apache-2.0
// A shell stands for the child: it writes to its standard input what the real one writes there.
#include "vfmgr/proof/interop/cm_pinger.hpp"

#include <gtest/gtest.h>

namespace vfmgr::interop {
namespace {

auto open(std::string const& script, RdmaMode rdma = RdmaMode::rxe) {
    verify::SessionPermit permit;
    permit.peer_address = IpAddress::parse("192.168.100.10").value();
    permit.host_address = IpAddress::parse("192.168.100.3").value();
    permit.host_netdev = "interface";
    permit.rdma = rdma;
    return cm_streams({"/bin/sh", "-c", script})(permit, {}, {});
}

TEST(CmStream, OffersThePortAndCountsThePings) {
    auto const stream = open("printf 'ready 45671' >&0; read unused; printf '1 0 10' >&0");
    ASSERT_TRUE(stream) << stream.error().detail;
    auto const& offer = (*stream)->offer();
    EXPECT_EQ(offer.cm_port, 45671);
    EXPECT_EQ(offer.stream.size(), 32U);
    EXPECT_EQ(offer.seconds, 60U);
    EXPECT_TRUE(offer.pairs.empty());
    EXPECT_EQ((*stream)->stop().messages, 10U);
}

// For this guest only, on any port, for the duration of a stream.
TEST(CmStream, TheChildIsToldForWhom) {
    auto const stream = open(
        "test \"$0 $*\" = '192.168.100.10 192.168.100.3 interface 0 60 - - -' && "
        "printf 'ready 45671' >&0; read unused");
    EXPECT_TRUE(stream) << stream.error().detail;
}

TEST(CmStream, TheChildsReasonIsTold) {
    auto const stream =
        open("printf 'RDMA CM is not available; load its kernel module: modprobe rdma_ucm' >&0");
    ASSERT_FALSE(stream);
    EXPECT_EQ(stream.error().problem, Problem::unsupported);
    EXPECT_EQ(stream.error().detail,
              "RDMA CM is not available; load its kernel module: modprobe rdma_ucm");
}

TEST(CmStream, ANetworkWithoutRdmaHasNone) {
    auto const stream = open("printf 'ready 45671' >&0; read unused", RdmaMode::none);
    ASSERT_FALSE(stream);
    EXPECT_EQ(stream.error().problem, Problem::forbidden);
}

}  // namespace
}  // namespace vfmgr::interop
