// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/rdma_listener.hpp"

#include <netinet/in.h>
#include <rdma/rdma_netlink.h>

#include <algorithm>
#include <iterator>

namespace vfmgr {
namespace {

constexpr std::uint16_t res_cm_id_get =
    (static_cast<unsigned>(RDMA_NL_NLDEV) << 10U) + RDMA_NLDEV_CMD_RES_CM_ID_GET;
// The kernel's enum rdma_cm_state (drivers/infiniband/core/cma_priv.h). A listener on every address
// has one child on each device, which listens there.
constexpr std::uint8_t state_listen = 8;

bool is_any(IpAddress const& address) {
    return std::ranges::all_of(address.octets, [](std::uint8_t octet) { return octet == 0; });
}

// Reads a sockaddr_storage of the kernel.
void read_address(ByteView bytes, CmListener& into) {
    auto const family = front_object<sa_family_t>(bytes);
    auto const four = front_object<sockaddr_in>(bytes);
    auto const six = front_object<sockaddr_in6>(bytes);
    if (family == AF_INET && four) {
        into.address = ip_address_in(bytes_of(four->sin_addr));
        into.port = big_endian(four->sin_port);
    } else if (family == AF_INET6 && six) {
        into.address = ip_address_in(bytes_of(six->sin6_addr));
        into.port = big_endian(six->sin6_port);
    }
    if (into.address && is_any(*into.address)) into.address.reset();
}

}  // namespace

std::vector<CmListener> parse_cm_listeners(ByteView payload) {
    std::vector<CmListener> listeners;
    auto const table = Attributes(payload).nested(RDMA_NLDEV_ATTR_RES_CM_ID);
    for (auto const& entry : table.all()) {
        if (entry.type != RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY) continue;
        Attributes const members(entry.value);
        if (members.value<std::uint8_t>(RDMA_NLDEV_ATTR_RES_STATE) != state_listen) continue;
        CmListener one;
        one.pid = members.value<std::int32_t>(RDMA_NLDEV_ATTR_RES_PID);
        one.comm = members.text(RDMA_NLDEV_ATTR_RES_KERN_NAME).value_or("");
        if (auto const address = members.find(RDMA_NLDEV_ATTR_RES_SRC_ADDR))
            read_address(*address, one);
        listeners.push_back(std::move(one));
    }
    return listeners;
}

Result<std::vector<CmListener>> list_cm_listeners(NlSocket& rdma, RdmaDevice const& device,
                                                  Deadline deadline) {
    NlRequest request(res_cm_id_get, NLM_F_DUMP);
    request.put(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
    VFMGR_TRY(auto const answers,
              rdma.dump(request, "RDMA_NLDEV_CMD_RES_CM_ID_GET " + device.name, deadline));
    std::vector<CmListener> listeners;
    for (auto const& answer : answers)
        if (answer.type == res_cm_id_get)
            std::ranges::move(parse_cm_listeners(answer.payload), std::back_inserter(listeners));
    return listeners;
}

}  // namespace vfmgr
