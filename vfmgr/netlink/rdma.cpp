// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/rdma.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_netlink.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace vfmgr {
namespace {

// From Linux 6.11 (include/uapi/rdma/rdma_netlink.h); older headers lack it.
constexpr std::uint16_t attr_parent_name = 100;  // RDMA_NLDEV_ATTR_PARENT_NAME

constexpr std::uint16_t type_of(unsigned command) {
    return static_cast<std::uint16_t>((static_cast<unsigned>(RDMA_NL_NLDEV) << 10U) + command);
}

Result<std::vector<RdmaPort>> list_ports(NlSocket& rdma, RdmaDevice const& device,
                                         Deadline deadline) {
    NlRequest request(type_of(RDMA_NLDEV_CMD_PORT_GET), NLM_F_DUMP);
    request.put(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
    return rdma.list(request, type_of(RDMA_NLDEV_CMD_PORT_GET),
                     "RDMA_NLDEV_CMD_PORT_GET " + device.name, deadline, parse_rdma_port);
}

// Only the uverbs device names the driver; without it (module not loaded) the driver stays unknown.
Result<std::optional<std::string>> driver_of(NlSocket& rdma, RdmaDevice const& device,
                                             Deadline deadline) {
    NlRequest request(type_of(RDMA_NLDEV_CMD_GET_CHARDEV), 0);
    request.put(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
    request.put_text(RDMA_NLDEV_ATTR_CHARDEV_TYPE, "uverbs");
    VFMGR_TRY(auto const reply,
              rdma.ask(request, "RDMA_NLDEV_CMD_GET_CHARDEV " + device.name, deadline));
    for (auto const& answer : reply.answers)
        if (answer.type == type_of(RDMA_NLDEV_CMD_GET_CHARDEV))
            return parse_rdma_driver(answer.payload);
    return std::nullopt;
}

// A kind of resource that the kernel accounts for.
struct Resource {
    std::uint16_t command;
    std::uint16_t table;
    std::uint16_t entry;
    std::string_view name;
    std::string_view call;
    // Kernels without it report all the others, and a process that uses a context for anything has
    // a pd in it.
    bool may_lack = false;
};
// The most informative first.
constexpr std::array<Resource, 4> resources = {
    {{RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY, "queue pair",
      "RDMA_NLDEV_CMD_RES_QP_GET"},
     {RDMA_NLDEV_CMD_RES_CM_ID_GET, RDMA_NLDEV_ATTR_RES_CM_ID, RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY,
      "CM id", "RDMA_NLDEV_CMD_RES_CM_ID_GET"},
     {RDMA_NLDEV_CMD_RES_PD_GET, RDMA_NLDEV_ATTR_RES_PD, RDMA_NLDEV_ATTR_RES_PD_ENTRY,
      "protection domain", "RDMA_NLDEV_CMD_RES_PD_GET"},
     {RDMA_NLDEV_CMD_RES_CTX_GET, RDMA_NLDEV_ATTR_RES_CTX, RDMA_NLDEV_ATTR_RES_CTX_ENTRY, "context",
      "RDMA_NLDEV_CMD_RES_CTX_GET", true}}};

// The MAD layer has a queue pair on every device that can have one.
bool is_cores_own(RdmaUser const& user) {
    return !user.pid && user.comm == "ib_core";
}

bool same_user(RdmaUser const& one, RdmaUser const& other) {
    return one.pid == other.pid && one.comm == other.comm;
}

// Linux answers an unknown command with EINVAL [src rdma_nl_rcv_msg].
bool is_unknown_command(Error const& error) {
    return std::ranges::any_of(error.causes, [](Cause const& cause) {
        return cause.code == "EINVAL" || cause.code == "EOPNOTSUPP";
    });
}

}  // namespace

std::vector<RdmaUser> parse_rdma_users(ByteView payload) {
    std::vector<RdmaUser> users;
    Attributes const attributes(payload);
    for (auto const& resource : resources) {
        auto const table = attributes.nested(resource.table);
        for (auto const& entry : table.all()) {
            if (entry.type != resource.entry) continue;
            Attributes const members(entry.value);
            users.push_back({members.value<std::int32_t>(RDMA_NLDEV_ATTR_RES_PID),
                             members.text(RDMA_NLDEV_ATTR_RES_KERN_NAME).value_or(""),
                             std::string(resource.name)});
        }
    }
    return users;
}

Result<std::vector<RdmaUser>> list_rdma_users(NlSocket& rdma, RdmaDevice const& device,
                                              Deadline deadline) {
    std::vector<RdmaUser> users;
    for (auto const& resource : resources) {
        NlRequest request(type_of(resource.command), NLM_F_DUMP);
        request.put(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
        auto listed =
            rdma.list(request, type_of(resource.command),
                      fmt::format("{} {}", resource.call, device.name), deadline, parse_rdma_users);
        if (!listed && resource.may_lack && is_unknown_command(listed.error())) continue;
        if (!listed) return fail(std::move(listed).error());
        for (auto& user : *listed) {
            auto const known = [&](RdmaUser const& one) { return same_user(one, user); };
            if (is_cores_own(user) || std::ranges::any_of(users, known)) continue;
            users.push_back(std::move(user));
        }
    }
    return users;
}

std::optional<RdmaDevice> parse_rdma_device(ByteView payload) {
    Attributes const attributes(payload);
    auto const index = attributes.value<std::uint32_t>(RDMA_NLDEV_ATTR_DEV_INDEX);
    auto name = attributes.text(RDMA_NLDEV_ATTR_DEV_NAME);
    if (!index || !name || name->empty()) return std::nullopt;
    RdmaDevice device;
    device.index = *index;
    device.name = std::move(*name);
    return device;
}

std::optional<std::string> parse_rdma_parent(ByteView payload) {
    auto parent = Attributes(payload).text(attr_parent_name);
    if (!parent || parent->empty()) return std::nullopt;
    return parent;
}

std::optional<RdmaPort> parse_rdma_port(ByteView payload) {
    Attributes const attributes(payload);
    auto const number = attributes.value<std::uint32_t>(RDMA_NLDEV_ATTR_PORT_INDEX);
    if (!number) return std::nullopt;
    RdmaPort port;
    port.number = *number;
    port.state = attributes.value<std::uint8_t>(RDMA_NLDEV_ATTR_PORT_STATE).value_or(0);
    port.ifindex = attributes.value<int>(RDMA_NLDEV_ATTR_NDEV_INDEX);
    port.ifname = attributes.text(RDMA_NLDEV_ATTR_NDEV_NAME).value_or("");
    return port;
}

std::optional<std::string> parse_rdma_driver(ByteView payload) {
    static constexpr std::array<std::pair<std::uint32_t, std::string_view>, 13> names = {
        {{RDMA_DRIVER_MLX5, "mlx5"},
         {RDMA_DRIVER_MLX4, "mlx4"},
         {RDMA_DRIVER_CXGB4, "cxgb4"},
         {RDMA_DRIVER_BNXT_RE, "bnxt_re"},
         {RDMA_DRIVER_OCRDMA, "ocrdma"},
         {RDMA_DRIVER_IRDMA, "irdma"},
         {RDMA_DRIVER_VMW_PVRDMA, "vmw_pvrdma"},
         {RDMA_DRIVER_QEDR, "qedr"},
         {RDMA_DRIVER_HNS, "hns"},
         {RDMA_DRIVER_RXE, "rxe"},
         {RDMA_DRIVER_EFA, "efa"},
         {RDMA_DRIVER_SIW, "siw"},
         {RDMA_DRIVER_ERDMA, "erdma"}}};
    auto const id = Attributes(payload).value<std::uint32_t>(RDMA_NLDEV_ATTR_UVERBS_DRIVER_ID);
    for (auto const& [number, name] : names)
        if (id == number) return std::string(name);
    return std::nullopt;
}

Result<std::vector<RdmaDevice>> list_rdma_devices(NlSocket& rdma, Deadline deadline) {
    constexpr auto get = type_of(RDMA_NLDEV_CMD_GET);
    VFMGR_TRY(auto devices, rdma.list(NlRequest(get, NLM_F_DUMP), get, "RDMA_NLDEV_CMD_GET",
                                      deadline, parse_rdma_device));
    for (auto& device : devices) {
        VFMGR_TRY(device.ports, list_ports(rdma, device, deadline));
        VFMGR_TRY(device.driver, driver_of(rdma, device, deadline));
    }
    return devices;
}

RdmaDevice const* rdma_device_on(std::vector<RdmaDevice> const& devices, int ifindex) {
    for (auto const& device : devices)
        if (std::any_of(device.ports.begin(), device.ports.end(),
                        [&](RdmaPort const& port) { return port.ifindex == ifindex; }))
            return &device;
    return nullptr;
}

Result<void> add_rdma_link(NlSocket& rdma, SoftRdmaLink const& link, Deadline deadline) {
    auto const type = enum_name(link.type);
    NlRequest request(type_of(RDMA_NLDEV_CMD_NEWLINK), 0);
    request.put_text(RDMA_NLDEV_ATTR_DEV_NAME, link.name)
        .put_text(RDMA_NLDEV_ATTR_LINK_TYPE, type)
        .put_text(RDMA_NLDEV_ATTR_NDEV_NAME, link.ifname);
    NlRefusal refusal{fmt::format("RDMA_NLDEV_CMD_NEWLINK {} on {}", type, link.ifname),
                      fmt::format("a {} device could not be created on {}", type, link.ifname)};
    auto const load = fmt::format("load its module: modprobe {}", module_of(link.type));
    // EINVAL: the kernel found no module for the type [src nldev.c].
    refusal.known = {{EINVAL, load, Problem::unsupported},
                     {EOPNOTSUPP, load, Problem::unsupported}};
    return rdma.change(request, std::move(refusal), deadline);
}

Result<void> remove_rdma_link(NlSocket& rdma, RdmaDevice const& device, Deadline deadline) {
    NlRequest request(type_of(RDMA_NLDEV_CMD_DELLINK), 0);
    request.put(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
    // EINVAL: no device with that number; the kernel reuses device numbers only after a reboot.
    return rdma.change(request,
                       {"RDMA_NLDEV_CMD_DELLINK " + device.name,
                        fmt::format("RDMA device {} could not be removed", device.name),
                        "stop the programs that use it: rdma resource show qp"},
                       deadline, {ENODEV});
}

namespace {

constexpr auto res_cm_id_get = type_of(RDMA_NLDEV_CMD_RES_CM_ID_GET);
// The kernel's enum rdma_cm_state (drivers/infiniband/core/cma_priv.h). A listener on every address
// has one child on each device, which listens there.
constexpr std::uint8_t state_listen = 8;

bool is_any(IpAddress const& address) {
    return std::ranges::all_of(address.octets, [](std::uint8_t octet) { return octet == 0; });
}

// Reads a sockaddr_storage of the kernel.
void read_address(ByteView bytes, RdmaListener& into) {
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

std::vector<RdmaListener> parse_cm_listeners(ByteView payload) {
    std::vector<RdmaListener> listeners;
    auto const table = Attributes(payload).nested(RDMA_NLDEV_ATTR_RES_CM_ID);
    for (auto const& entry : table.all()) {
        if (entry.type != RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY) continue;
        Attributes const members(entry.value);
        if (members.value<std::uint8_t>(RDMA_NLDEV_ATTR_RES_STATE) != state_listen) continue;
        RdmaListener one;
        one.pid = members.value<std::int32_t>(RDMA_NLDEV_ATTR_RES_PID);
        one.comm = members.text(RDMA_NLDEV_ATTR_RES_KERN_NAME).value_or("");
        if (auto const address = members.find(RDMA_NLDEV_ATTR_RES_SRC_ADDR))
            read_address(*address, one);
        listeners.push_back(std::move(one));
    }
    return listeners;
}

Result<std::vector<RdmaListener>> list_cm_listeners(NlSocket& rdma, RdmaDevice const& device,
                                                    Deadline deadline) {
    NlRequest request(res_cm_id_get, NLM_F_DUMP);
    request.put(RDMA_NLDEV_ATTR_DEV_INDEX, device.index);
    return rdma.list(request, res_cm_id_get, "RDMA_NLDEV_CMD_RES_CM_ID_GET " + device.name,
                     deadline, parse_cm_listeners);
}

}  // namespace vfmgr
