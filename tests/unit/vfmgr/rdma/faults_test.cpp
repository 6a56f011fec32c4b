// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/rdma/faults.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace vfmgr::verify {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct KnownError {
    char const* name;
    char const* call;
    int error_number;
    char const* cause;
    char const* command;
};

class EachErrno : public testing::TestWithParam<KnownError> {};

TEST_P(EachErrno, HasItsCauseAndACommand) {
    auto const& known = GetParam();
    auto const fault = errno_fault(known.call, known.error_number);
    ASSERT_TRUE(fault);
    EXPECT_THAT(std::string(fault->cause), HasSubstr(known.cause));
    EXPECT_THAT(std::string(fault->command), HasSubstr(known.command));
    EXPECT_THAT(remedy_of(*fault), StartsWith(std::string(fault->cause) + ": "));
}

constexpr KnownError known_errors[] = {
    {"LockedMemory", "ibv_reg_mr", ENOMEM, "locked memory", "LimitMEMLOCK=infinity"},
    {"GpuWithoutPeermem", "ibv_reg_mr", EFAULT, "not this machine's RAM",
     "modprobe nvidia_peermem"},
    {"NoDmaBuf", "ibv_reg_dmabuf_mr", EOPNOTSUPP, "can't register a DMA-BUF",
     "modprobe nvidia_peermem"},
    {"NoDmaBufInAProvider", "ibv_reg_dmabuf_mr", EPROTONOSUPPORT, "can't register a DMA-BUF",
     "vf-guest peermem --explain"},
    {"GpuOutOfReach", "ibv_reg_dmabuf_mr", 524, "does not let this NIC reach the GPU",
     "nvidia-smi topo -m"},
    {"RegionTooLong", "ibv_reg_mr", EINVAL, "refuses an MR", "max_mr_size"},
    {"NoNeighbour", "ibv_modify_qp", ETIMEDOUT, "does not resolve", "ip neigh"},
    {"NoRoute", "ibv_modify_qp", ENETUNREACH, "does not resolve", "ip route get"},
    {"NoHost", "ibv_create_ah", EHOSTUNREACH, "does not resolve", "ip neigh"},
    {"GidHasGone", "ibv_modify_qp", EINVAL, "a GID that is gone", "ibv_devinfo -v"},
    {"NoPairs", "ibv_create_qp", ENOMEM, "no room for more queue pairs", "rdma resource show"},
    {"NoPermission", "ibv_open_device", EACCES, "/dev/infiniband/uverbs*", "root"},
    {"NotPermitted", "ibv_open_device", EPERM, "/dev/infiniband/uverbs*", "cgroup"},
    {"NoDeviceFile", "ibv_open_device", ENOENT, "udev has not created", "ib_uverbs"},
    {"NoMemoryToOpen", "ibv_open_device", ENOMEM, "too low", "LimitMEMLOCK="},
    {"OpenFiles", "ibv_create_comp_channel", EMFILE, "of open files is too low", "ulimit -l -n"},
    {"NoCmDevice", "rdma_resolve_addr", ENODEV, "node GUID is zero", "ibv_devinfo -v"},
    {"NoCmAddress", "rdma_resolve_addr", EADDRNOTAVAIL, "its GID is missing", "ibv_devinfo -v"},
    {"NoCmRoute", "rdma_resolve_addr", ENETUNREACH, "does not resolve", "ip route get"},
    {"NoCmHost", "rdma_resolve_addr", EHOSTUNREACH, "does not resolve", "ip neigh"},
    {"DeviceGone", "ibv_post_send", EIO, "failed or is gone", "rdma link"},
};
INSTANTIATE_TEST_SUITE_P(Faults, EachErrno, testing::ValuesIn(known_errors),
                         [](auto const& one) { return std::string(one.param.name); });

TEST(Faults, AnErrnoOfAnotherCallIsNotExplainedByChance) {
    EXPECT_FALSE(errno_fault("ibv_reg_mr", ETIMEDOUT));
    EXPECT_FALSE(errno_fault("ibv_open_device", EAGAIN));
}

TEST(Faults, EachStatusSaysWhatToDo) {
    for (int status = IBV_WC_LOC_LEN_ERR; status <= IBV_WC_TM_RNDV_INCOMPLETE; ++status) {
        auto const fault = completion_fault(static_cast<ibv_wc_status>(status), 0);
        EXPECT_FALSE(fault.cause.empty() || fault.command.empty()) << status;
    }
    EXPECT_THAT(remedy_of(completion_fault(IBV_WC_RETRY_EXC_ERR, 0x81)), HasSubstr("port 4791"));
}

TEST(Faults, AVendorErrorIsNearerToTheCauseThanTheStatus) {
    auto const plain = completion_fault(IBV_WC_LOC_PROT_ERR, 0);
    auto const mlx5 = completion_fault(IBV_WC_LOC_PROT_ERR, 0x51);
    EXPECT_THAT(std::string(plain.cause), HasSubstr("key"));
    EXPECT_THAT(std::string(mlx5.cause), HasSubstr("IOMMU"));
}

struct KnownEvent {
    char const* name;
    rdma_cm_event_type event;
    int status;
    char const* cause;
    char const* command;
};

class EachCmEvent : public testing::TestWithParam<KnownEvent> {};

TEST_P(EachCmEvent, HasItsCauseAndACommand) {
    auto const& known = GetParam();
    auto const fault = cm_fault(known.event, known.status);
    EXPECT_THAT(std::string(fault.cause), HasSubstr(known.cause));
    EXPECT_THAT(std::string(fault.command), HasSubstr(known.command));
}

constexpr KnownEvent known_events[] = {
    {"NoNeighbour", RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, "does not resolve", "ip neigh"},
    {"NoHost", RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH, "does not resolve", "ip neigh"},
    {"NoNetwork", RDMA_CM_EVENT_ADDR_ERROR, -ENETUNREACH, "does not resolve", "ip route get"},
    // librdmacm reports this for a device that it does not find by its node GUID.
    {"NoDevice", RDMA_CM_EVENT_ADDR_ERROR, -1, "node GUID is zero", "ibv_devinfo -v"},
    {"NoRoute", RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL, "too small an MTU", "ip link show"},
    {"Silent", RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, "does not answer", "cma_roce_mode"},
    {"NoListener", RDMA_CM_EVENT_REJECTED, 8, "nothing listens", "rdma resource show cm_id"},
    {"Stale", RDMA_CM_EVENT_REJECTED, 10, "earlier connection", "in a minute"},
    {"UnknownGid", RDMA_CM_EVENT_REJECTED, 12, "does not know the GID", "cma_roce_mode"},
    {"NotThisClient", RDMA_CM_EVENT_REJECTED, 28, "refuses this address", "ip route get"},
    {"Refused", RDMA_CM_EVENT_REJECTED, 3, "RDMA CM refuses", "dmesg"},
    {"DeviceGone", RDMA_CM_EVENT_DEVICE_REMOVAL, 0, "failed or is gone", "rdma link"},
    {"Another", RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL, "gives no further reason", "dmesg"},
};
INSTANTIATE_TEST_SUITE_P(Faults, EachCmEvent, testing::ValuesIn(known_events),
                         [](auto const& one) { return std::string(one.param.name); });

struct KnownLine {
    char const* name;
    char const* line;
    char const* cause;
};

class EachLine : public testing::TestWithParam<KnownLine> {};

TEST_P(EachLine, OfTheKernelsLogIsExplained) {
    auto const fault = log_fault(GetParam().line);
    ASSERT_TRUE(fault) << GetParam().line;
    EXPECT_THAT(std::string(fault->cause), HasSubstr(GetParam().cause));
}

// As the sources of Linux 6.1 print them.
constexpr KnownLine known_lines[] = {
    {"LinkDown", "igbvf 0000:00:05.0: Link is Down", "the link went down"},
    {"Neighbours", "neighbour: arp_cache: neighbor table overflow!", "neighbour table is full"},
    {"Watchdog", "NETDEV WATCHDOG: eth0 (igbvf): transmit queue 0 timed out", "sent nothing"},
    {"IntelIommu",
     "DMAR: [DMA Write NO_PASID] Request device [01:10.0] fault addr 0xfe000000 [fault reason "
     "0x05] "
     "PTE Write access is not set",
     "the IOMMU blocked"},
    {"AmdIommu",
     "AMD-Vi: Event logged [IO_PAGE_FAULT device=0000:01:10.0 domain=0x0011 address=0xfe000000 "
     "flags=0x0020]",
     "the IOMMU blocked"},
    {"Peermem", "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",
     "another RDMA stack"},
    {"Firmware", "mlx5_core 0000:81:00.2: device's health compromised - reached miss count",
     "firmware"},
    {"OutOfMemory", "Out of memory: Killed process 812 (python3) total-vm:16777216kB",
     "the machine ran out of memory"},
    {"PcieErrors",
     "pcieport 0000:80:01.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer",
     "PCIe link has errors"},
};
INSTANTIATE_TEST_SUITE_P(Faults, EachLine, testing::ValuesIn(known_lines),
                         [](auto const& one) { return std::string(one.param.name); });

TEST(Faults, OtherLinesAreNotExplained) {
    for (auto const* line : {"", "igbvf 0000:00:05.0: Link is Up 1000 Mbps Full Duplex",
                             "DMAR: Host address width 46", "AMD-Vi: Interrupt remapping enabled",
                             "nv: disagrees about version of symbol module_layout"})
        EXPECT_FALSE(log_fault(line)) << line;
}

}  // namespace
}  // namespace vfmgr::verify
