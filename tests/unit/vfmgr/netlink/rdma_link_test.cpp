// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/rdma.hpp"

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_netlink.h>

#include "network_namespace.hpp"
#include "vfmgr/netlink/rdma.hpp"

namespace vfmgr {
namespace {

using test::Bytes;
using test::soon;

TEST(ParseRdmaDevice, ReadsNumberAndName) {
    auto const bytes = Bytes()
                           .put<std::uint32_t>(RDMA_NLDEV_ATTR_DEV_INDEX, 2)
                           .text(RDMA_NLDEV_ATTR_DEV_NAME, "rxe0");
    auto const device = parse_rdma_device(bytes.view()).value();
    EXPECT_EQ(device.index, 2U);
    EXPECT_EQ(device.name, "rxe0");
}

TEST(ParseRdmaDevice, WithoutNameOrNumberIsNothing) {
    EXPECT_EQ(parse_rdma_device({}), std::nullopt);
    EXPECT_EQ(parse_rdma_device(Bytes().text(RDMA_NLDEV_ATTR_DEV_NAME, "rxe0").view()),
              std::nullopt);
    EXPECT_EQ(parse_rdma_device(Bytes().put<std::uint32_t>(RDMA_NLDEV_ATTR_DEV_INDEX, 2).view()),
              std::nullopt);
}

// "rdma dev show smi1" of a multi-plane NIC: "type smi parent ibp8s0f1".
TEST(ParseRdmaParent, IsOfSubDevicesOnly) {
    auto bytes = Bytes()
                     .put<std::uint32_t>(RDMA_NLDEV_ATTR_DEV_INDEX, 2)
                     .text(RDMA_NLDEV_ATTR_DEV_NAME, "smi1");
    EXPECT_EQ(parse_rdma_parent(bytes.view()), std::nullopt);
    EXPECT_EQ(parse_rdma_parent(bytes.text(100, "ibp8s0f1").view()), "ibp8s0f1");
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

Bytes entry_of(std::uint32_t pid) {
    return Bytes()
        .put<std::uint32_t>(RDMA_NLDEV_ATTR_RES_LQPN, 17)
        .put(RDMA_NLDEV_ATTR_RES_PID, pid);
}

// "rdma resource show qp" for a device that a process and a kernel component use.
TEST(ParseRdmaUsers, ReadsProcessesAndTheKernelsNames) {
    auto const table = Bytes()
                           .nest(RDMA_NLDEV_ATTR_RES_QP_ENTRY, entry_of(812))
                           .nest(RDMA_NLDEV_ATTR_RES_QP_ENTRY,
                                 Bytes().text(RDMA_NLDEV_ATTR_RES_KERN_NAME, "nvme_rdma"))
                           .nest(RDMA_NLDEV_ATTR_RES_PD_ENTRY, entry_of(813));
    auto const bytes = Bytes()
                           .put<std::uint32_t>(RDMA_NLDEV_ATTR_DEV_INDEX, 2)
                           .nest(RDMA_NLDEV_ATTR_RES_QP, table);
    EXPECT_EQ(parse_rdma_users(bytes.view()),
              (std::vector<RdmaUser>{{812, "", "queue pair"}, {{}, "nvme_rdma", "queue pair"}}))
        << "an entry of another kind is none of a queue pair";
}

TEST(ParseRdmaUsers, EachKindHasItsName) {
    auto const one = [](int table, int entry) {
        return parse_rdma_users(Bytes().nest(table, Bytes().nest(entry, entry_of(7))).view());
    };
    EXPECT_EQ(one(RDMA_NLDEV_ATTR_RES_CM_ID, RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY),
              (std::vector<RdmaUser>{{7, "", "CM id"}}));
    EXPECT_EQ(one(RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY),
              (std::vector<RdmaUser>{{7, "", "protection domain"}}));
    EXPECT_EQ(one(RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY),
              (std::vector<RdmaUser>{{7, "", "context"}}));
    EXPECT_TRUE(parse_rdma_users({}).empty());
}

// A user without a name still counts.
TEST(ParseRdmaUsers, AnEntryWithoutAnOwnerCounts) {
    auto const bytes =
        Bytes().nest(RDMA_NLDEV_ATTR_RES_QP, Bytes().nest(RDMA_NLDEV_ATTR_RES_QP_ENTRY, Bytes()));
    EXPECT_EQ(parse_rdma_users(bytes.view()), (std::vector<RdmaUser>{{{}, "", "queue pair"}}));
}

TEST(RdmaDeviceOn, FindsByPort) {
    RdmaDevice one{0, "rxe0", "rxe", {{1, 4, 7, "enp1s0"}}};
    RdmaDevice two{1, "rxe1", "rxe", {{1, 4, std::nullopt, ""}, {2, 4, 9, "enp2s0"}}};
    std::vector<RdmaDevice> const devices{one, two};
    EXPECT_EQ(rdma_device_on(devices, 9), &devices[1]);
    EXPECT_EQ(rdma_device_on(devices, 7), &devices[0]);
    EXPECT_EQ(rdma_device_on(devices, 8), nullptr);
}

// A kernel without RDMA reports that, with a remedy; the lab's has it.
TEST(RdmaLinks, AreListedWithTheirUsers) {
    auto rdma = NlSocket::open(NlProtocol::rdma);
    if (!rdma) {
        EXPECT_EQ(rdma.error().problem, Problem::unsupported) << rdma.error().detail;
        EXPECT_NE(rdma.error().remedy.find("modprobe"), std::string::npos);
        GTEST_SKIP() << "this kernel lists no RDMA devices: " << rdma.error().detail;
    }
    auto const devices = list_rdma_devices(*rdma, soon());
    ASSERT_TRUE(devices);
    for (auto const& device : *devices) {
        EXPECT_TRUE(list_rdma_users(*rdma, device, soon())) << device.name;
        EXPECT_TRUE(list_cm_listeners(*rdma, device, soon())) << device.name;
    }
}

}  // namespace
}  // namespace vfmgr
