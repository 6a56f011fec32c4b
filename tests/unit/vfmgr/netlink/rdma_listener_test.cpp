// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/rdma.hpp"

#include <netinet/in.h>
#include <rdma/rdma_netlink.h>

#include "network_namespace.hpp"

namespace vfmgr {
namespace {

using test::Bytes;

constexpr std::uint8_t listens = 8;
constexpr std::uint8_t connected = 5;

// The kernel's sockaddr_storage: 128 octets, whatever they hold.
Bytes storage(Bytes const& address) {
    Bytes bytes = address;
    while (bytes.view().size() < 128) bytes.add(std::uint8_t{0});
    return bytes;
}
Bytes four(std::uint16_t port, std::array<std::uint8_t, 4> const& octets) {
    return storage(Bytes().add<sa_family_t>(AF_INET).add(big_endian(port)).add(octets));
}
Bytes six(std::uint16_t port, std::array<std::uint8_t, 16> const& octets) {
    return storage(Bytes().add<sa_family_t>(AF_INET6).add(big_endian(port)).add(0).add(octets));
}

Bytes entry(std::uint8_t state, Bytes const& address) {
    return Bytes()
        .put<std::uint32_t>(RDMA_NLDEV_ATTR_RES_PS, 0x106)
        .put(RDMA_NLDEV_ATTR_RES_STATE, state)
        .attribute(RDMA_NLDEV_ATTR_RES_SRC_ADDR, address.view());
}
Bytes owned(Bytes bytes, std::uint32_t pid) {
    return bytes.put(RDMA_NLDEV_ATTR_RES_PID, pid);
}

std::vector<RdmaListener> parsed(std::initializer_list<Bytes> entries) {
    Bytes table;
    for (auto const& each : entries) table.nest(RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY, each);
    return parse_cm_listeners(Bytes()
                                  .put<std::uint32_t>(RDMA_NLDEV_ATTR_DEV_INDEX, 2)
                                  .nest(RDMA_NLDEV_ATTR_RES_CM_ID, table)
                                  .view());
}

// "rdma resource show cm_id" for a device with an rping -s, another at one address, and nvmet-rdma.
TEST(ParseCmListeners, ReadsWhoListensWhere) {
    auto const kernels = entry(listens, six(4420, {}));
    auto named = kernels;
    named.text(RDMA_NLDEV_ATTR_RES_KERN_NAME, "nvmet_rdma");
    EXPECT_EQ(parsed({owned(entry(listens, four(7174, {})), 812),
                      owned(entry(listens, four(7175, {10, 1, 2, 3})), 813), named}),
              (std::vector<RdmaListener>{{812, "", std::nullopt, 7174},
                                         {813, "", IpAddress::parse("10.1.2.3").value(), 7175},
                                         {std::nullopt, "nvmet_rdma", std::nullopt, 4420}}));
}

TEST(ParseCmListeners, AConnectionIsNone) {
    EXPECT_TRUE(parsed({owned(entry(connected, four(7174, {10, 1, 2, 3})), 812)}).empty());
    EXPECT_TRUE(parsed({Bytes().put<std::uint32_t>(RDMA_NLDEV_ATTR_RES_PID, 812)}).empty());
    EXPECT_TRUE(parse_cm_listeners({}).empty());
}

// An address that is not IP, or is cut off, may be reachable as one at every address.
TEST(ParseCmListeners, AnAddressThatCannotBeReadIsEveryAddress) {
    RdmaListener const everywhere{812, "", std::nullopt, 0};
    auto const infiniband = storage(Bytes().add<sa_family_t>(27));
    EXPECT_EQ(parsed({owned(entry(listens, infiniband), 812)}), std::vector{everywhere});
    auto const cut = Bytes().add<sa_family_t>(AF_INET6);
    EXPECT_EQ(parsed({owned(entry(listens, cut), 812)}), std::vector{everywhere});
}

}  // namespace
}  // namespace vfmgr
