// SPDX-License-Identifier: Apache-2.0
// Any bytes as answers of RDMA netlink: a parsed device has a name, and a parsed user holds an
// object of it.
#include <cstdlib>

#include "vfmgr/netlink/rdma.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const bytes = std::as_bytes(std::span(data, size));
    auto const device = vfmgr::parse_rdma_device(bytes);
    if (device && device->name.empty()) std::abort();
    auto const parent = vfmgr::parse_rdma_parent(bytes);
    if (parent && parent->empty()) std::abort();
    static_cast<void>(vfmgr::parse_rdma_port(bytes));
    static_cast<void>(vfmgr::parse_rdma_driver(bytes));
    for (auto const& user : vfmgr::parse_rdma_users(bytes))
        if (user.holds.empty() || user.comm.find('\0') != user.comm.npos) std::abort();
    for (auto const& listener : vfmgr::parse_cm_listeners(bytes))
        if (listener.comm.find('\0') != listener.comm.npos ||
            listener.address == vfmgr::IpAddress{})
            std::abort();
    return 0;
}
