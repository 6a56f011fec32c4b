// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/rdma_link.hpp"

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_netlink.h>

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using test::Bytes;
using test::soon;

TEST(ParseRdmaDevice, ReadsNameAndGuid) {
    auto const bytes = Bytes()
                           .put<std::uint32_t>(RDMA_NLDEV_ATTR_DEV_INDEX, 2)
                           .text(RDMA_NLDEV_ATTR_DEV_NAME, "rxe0")
                           .put<std::uint64_t>(RDMA_NLDEV_ATTR_NODE_GUID, 0x505400fffe010203)
                           .text(RDMA_NLDEV_ATTR_DEV_PROTOCOL, "roce");
    auto const device = parse_rdma_device(bytes.view()).value();
    EXPECT_EQ(device.index, 2U);
    EXPECT_EQ(device.name, "rxe0");
    EXPECT_EQ(to_string(device.node_guid.value()), "50:54:00:ff:fe:01:02:03");
    EXPECT_EQ(device.protocol, "roce");
}

TEST(ParseRdmaDevice, WithoutNameOrNumberIsNothing) {
    EXPECT_EQ(parse_rdma_device({}), std::nullopt);
    EXPECT_EQ(parse_rdma_device(Bytes().text(RDMA_NLDEV_ATTR_DEV_NAME, "rxe0").view()),
              std::nullopt);
    EXPECT_EQ(parse_rdma_device(Bytes().put<std::uint32_t>(RDMA_NLDEV_ATTR_DEV_INDEX, 2).view()),
              std::nullopt);
}

TEST(ParseRdmaPort, ReadsNetdevAndState) {
    auto const bytes = Bytes()
                           .put<std::uint32_t>(RDMA_NLDEV_ATTR_PORT_INDEX, 1)
                           .put<std::uint8_t>(RDMA_NLDEV_ATTR_PORT_STATE, 4)
                           .put<std::uint32_t>(RDMA_NLDEV_ATTR_NDEV_INDEX, 7)
                           .text(RDMA_NLDEV_ATTR_NDEV_NAME, "enp1s0");
    EXPECT_EQ(parse_rdma_port(bytes.view()), (RdmaPort{1, rdma_port_active, 7, "enp1s0"}));
    EXPECT_EQ(parse_rdma_port({}), std::nullopt);
}

TEST(ParseRdmaDriver, NamesTheDriversItKnows) {
    auto const driver = [](std::uint32_t id) {
        return parse_rdma_driver(
            Bytes().put<std::uint32_t>(RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID, id).view());
    };
    EXPECT_EQ(driver(RDMA_DRIVER_RXE), "rxe");
    EXPECT_EQ(driver(RDMA_DRIVER_SIW), "siw");
    EXPECT_EQ(driver(RDMA_DRIVER_MLX5), "mlx5");
    EXPECT_EQ(driver(4000), std::nullopt);
    EXPECT_EQ(parse_rdma_driver({}), std::nullopt);
}

TEST(RdmaDeviceOn, FindsByPort) {
    RdmaDevice one{0, "rxe0", {}, "roce", "rxe", {{1, 4, 7, "enp1s0"}}};
    RdmaDevice two{1, "rxe1", {}, "roce", "rxe", {{1, 4, std::nullopt, ""}, {2, 4, 9, "enp2s0"}}};
    std::vector<RdmaDevice> const devices{one, two};
    EXPECT_EQ(rdma_device_on(devices, 9), &devices[1]);
    EXPECT_EQ(rdma_device_on(devices, 7), &devices[0]);
    EXPECT_EQ(rdma_device_on(devices, 8), nullptr);
}

// Kernels without RDMA say unsupported with a remedy; those with it list what they have.
TEST(RdmaLinks, ListOrUnsupported) {
    auto rdma = NlSocket::open(NlProtocol::rdma);
    if (!rdma) {
        EXPECT_EQ(rdma.error().problem, Problem::unsupported) << rdma.error().detail;
        EXPECT_NE(rdma.error().remedy.find("modprobe"), std::string::npos);
        return;
    }
    EXPECT_TRUE(list_rdma_devices(*rdma, soon()));
}

}  // namespace
}  // namespace vfmgr
