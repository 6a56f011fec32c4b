// SPDX-License-Identifier: Apache-2.0
// RDMA devices: lists them with their ports and network devices, makes and removes software ones.
// Free functions on a socket of NlProtocol::rdma that the caller owns; its thread. Where the kernel
// has no RDMA at all, opening that socket returns `unsupported`.
#pragma once

#include "api/types/pf_state.hpp"
#include "api/types/rdma.hpp"
#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

struct RdmaPort {
    std::uint32_t number = 1;
    std::uint8_t state = 0;      // 1 down, 2 init, 3 armed, 4 active
    std::optional<int> ifindex;  // absent: no network device in this namespace
    std::string ifname;
    bool operator==(RdmaPort const&) const = default;
};
inline constexpr std::uint8_t rdma_port_active = 4;

struct RdmaDevice {
    std::uint32_t index = 0;
    std::string name;
    std::optional<std::string> driver;  // "rxe", "siw", "mlx5"; absent: unknown to us, or no uverbs
    std::vector<RdmaPort> ports;
};

[[nodiscard]] Result<std::vector<RdmaDevice>> list_rdma_devices(NlSocket& rdma, Deadline deadline);
// Returns the first device with a port on that network device.
[[nodiscard]] RdmaDevice const* rdma_device_on(std::vector<RdmaDevice> const& devices, int ifindex);

// Lists every user with a queue pair, CM id, pd or context of the device, each once, with the first
// of these that it has. Leaves out what ib_core makes on every device for itself. The caller adds
// the names of processes. An Error when the kernel does not report all of them.
[[nodiscard]] Result<std::vector<RdmaUser>> list_rdma_users(NlSocket& rdma,
                                                            RdmaDevice const& device,
                                                            Deadline deadline);

// The kernel loads the type's module itself (request_module "rdma-link-<type>").
[[nodiscard]] Result<void> add_rdma_link(NlSocket& rdma, SoftRdmaLink const& link,
                                         Deadline deadline);
// Succeeds when the device is already gone. Hardware refuses.
[[nodiscard]] Result<void> remove_rdma_link(NlSocket& rdma, RdmaDevice const& device,
                                            Deadline deadline);

// Parse the payloads of RDMA_NLDEV_CMD_GET and RDMA_NLDEV_CMD_PORT_GET.
[[nodiscard]] std::optional<RdmaDevice> parse_rdma_device(ByteView payload);
[[nodiscard]] std::optional<RdmaPort> parse_rdma_port(ByteView payload);
// Parses RDMA_NLDEV_CMD_GET: the device that this one was made from. An SMI device of a multi-plane
// NIC has one: a MAD port that carries no data.
[[nodiscard]] std::optional<std::string> parse_rdma_parent(ByteView payload);
// Parses payloads of RDMA_NLDEV_CMD_RES_*_GET: the user of each entry. An entry without an owner
// has neither pid nor name.
[[nodiscard]] std::vector<RdmaUser> parse_rdma_users(ByteView payload);
// Parses the payload of RDMA_NLDEV_CMD_GET_CHARDEV for "uverbs".
[[nodiscard]] std::optional<std::string> parse_rdma_driver(ByteView payload);

// Lists the RDMA CM listeners of an RDMA device, as `rdma resource show cm_id` does. Free functions
// on a socket of NlProtocol::rdma that the caller owns; its thread.

// Includes listeners on every address: the kernel has a CM id for each of them on each device. The
// caller adds the names of processes.
[[nodiscard]] Result<std::vector<RdmaListener>> list_cm_listeners(NlSocket& rdma,
                                                                  RdmaDevice const& device,
                                                                  Deadline deadline);

// Reads the payload of RDMA_NLDEV_CMD_RES_CM_ID_GET, and returns the CM ids that listen.
[[nodiscard]] std::vector<RdmaListener> parse_cm_listeners(ByteView payload);

}  // namespace vfmgr
