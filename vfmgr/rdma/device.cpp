// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/rdma/device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <net/if.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <optional>
#include <span>
#include <vector>

#include "vfmgr/rdma/faults.hpp"

namespace vfmgr::verify {
namespace {

// librdmacm does not check for it, and crashes perftest's -R (RDMA.md#node-guid).
Error no_guid(std::string const& device) {
    return {Problem::unavailable,
            fmt::format("the node GUID of {} is zero, so connections over it fail", device),
            "the VF had no MAC (InfiniBand: no GUIDs) when its driver was bound: set it on the "
            "host before that, then detach the VF and attach it again"};
}

char const* link_remedy(ibv_port_state state) {
    switch (state) {
        case IBV_PORT_DOWN:
            return "bring up the netdev, and the PF on the host; check the PF's cable, and that "
                   "the VF's link_state is not disable";
        case IBV_PORT_INIT:
            return "start a subnet manager in the InfiniBand fabric";
        case IBV_PORT_ARMED:
            return "check the subnet manager: it has not activated the port";
        case IBV_PORT_ACTIVE_DEFER:
            return "check cable and switch: the link is retraining";
        default:
            return "check the kernel log: dmesg | tail";
    }
}

}  // namespace

Result<void> judge_port(PortState const& port) {
    auto const shown = fmt::format("{} port {}", port.device, port.number);
    if (port.layer != port.needed && port.needed == LinkLayer::infiniband)
        return fail(Problem::unsupported,
                    fmt::format("{} is Ethernet (RoCE), but the network is InfiniBand", shown),
                    "attach a VF of a PF with that link layer, or set the PF's on the host (1 is "
                    "InfiniBand, 2 Ethernet): mlxconfig -d PCI set LINK_TYPE_P1=1");
    if (port.layer != port.needed)
        return fail(Problem::unsupported,
                    fmt::format("{} is InfiniBand, but the network is Ethernet (RoCE)", shown),
                    "attach a VF of a PF with that link layer, or set the PF's on the host (2 is "
                    "Ethernet, 1 InfiniBand): mlxconfig -d PCI set LINK_TYPE_P1=2");
    if (port.node_guid == 0) return fail(no_guid(port.device));
    if (port.state == IBV_PORT_ACTIVE && (port.layer == LinkLayer::ethernet || port.lid != 0))
        return {};
    if (port.state == IBV_PORT_ACTIVE)
        return fail(Problem::unavailable, fmt::format("{} has no LID", shown),
                    "check the subnet manager: it gives each port its address (sminfo shows it)");
    return fail(Problem::unavailable,
                fmt::format("{} is {}, not active", shown, ibv_port_state_str(port.state)),
                link_remedy(port.state));
}

Result<void> judge_ports(std::span<PortState const> ports) {
    Result<void> first;
    for (auto const& port : ports) {
        auto const judged = judge_port(port);
        if (judged) return {};
        if (first) first = judged;
    }
    return first;
}

namespace {

using Steady = std::chrono::steady_clock;

// Neither is an IEEE number: RXE_VENDOR_ID, SIW_VENDOR_ID.
constexpr std::uint32_t rxe_vendor = 0xffffff;
constexpr std::uint32_t siw_vendor = 0x626d74;

struct Found {
    VerbsContext context;
    ibv_gid_entry entry{};
};

// What a caller means by a port: a GID on a netdev, or InfiniBand's GUID.
struct Meant {
    std::array<std::uint8_t, 16> gid{};
    unsigned ifindex = 0;
    std::optional<Guid> guid;

    [[nodiscard]] LinkLayer layer() const {
        return guid ? LinkLayer::infiniband : LinkLayer::ethernet;
    }
};

PortState port_state(ibv_context* context, std::uint8_t number, ibv_device_attr const& device,
                     ibv_port_attr const& port, LinkLayer needed) {
    return {.device = context->device->name,
            .number = number,
            .node_guid = device.node_guid,
            .state = port.state,
            // Drivers older than the field report unspecified, which means InfiniBand
            // (ibv_query_port(3)).
            .layer = port.link_layer == IBV_LINK_LAYER_ETHERNET ? LinkLayer::ethernet
                                                                : LinkLayer::infiniband,
            .needed = needed,
            .lid = port.lid};
}

// Every device that could be opened, and the GID entry if one of them has it.
struct Scan {
    std::vector<VerbsContext> opened;
    std::vector<std::string> names;
    std::vector<std::string> reasons;  // why a device could not be queried
    std::vector<PortState> ports;      // candidates for the one that the caller means
    std::string remedy;                // for the last of the reasons
    std::optional<Found> found;
};

bool matches(ibv_gid_entry const& entry, Meant const& meant) {
    if (meant.guid)
        return entry.gid_type == IBV_GID_TYPE_IB &&
               guid_of(std::to_array(entry.gid.raw)) == *meant.guid;
    return entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
           (meant.ifindex == 0 || entry.ndev_ifindex == meant.ifindex) &&
           std::ranges::equal(entry.gid.raw, meant.gid);
}

std::vector<ibv_gid_entry> gid_table(ibv_context* context) {
    std::vector<ibv_gid_entry> entries(1024);
    auto const count = ibv_query_gid_table(context, entries.data(), entries.size(), 0);
    entries.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return entries;
}

// False if all of its GIDs belong to other netdevs; InfiniBand's belong to none.
bool may_be_on(std::vector<ibv_gid_entry> const& entries, unsigned ifindex) {
    return ifindex == 0 ||
           std::ranges::all_of(entries, [](auto const& one) { return one.ndev_ifindex == 0; }) ||
           std::ranges::find(entries, ifindex, &ibv_gid_entry::ndev_ifindex) != entries.end();
}

std::vector<PortState> port_states(ibv_context* context, LinkLayer needed) {
    ibv_device_attr device{};
    std::vector<PortState> ports;
    if (ibv_query_device(context, &device) != 0) return ports;
    for (unsigned i = 1; i <= device.phys_port_cnt; ++i) {
        auto const number = static_cast<std::uint8_t>(i);
        ibv_port_attr port{};
        if (ibv_query_port(context, number, &port) == 0)
            ports.push_back(port_state(context, number, device, port, needed));
    }
    return ports;
}

Scan scan_devices(Meant const& meant) {
    Scan scan;
    int count = 0;
    VerbsDevices const devices(ibv_get_device_list(&count));
    if (!devices) {
        scan.reasons.push_back(fmt::format("ibv_get_device_list: {}", errno_name(errno)));
        return scan;
    }
    for (auto* device : std::span(devices.get(), static_cast<std::size_t>(count))) {
        VerbsContext context(ibv_open_device(device));
        if (!context) {
            auto const error_number = errno;
            if (auto const fault = errno_fault("ibv_open_device", error_number))
                scan.remedy = remedy_of(*fault);
            scan.reasons.push_back(
                fmt::format("{} can't be opened: {}", device->name, errno_name(error_number)));
            continue;
        }
        scan.names.emplace_back(device->name);
        auto const entries = gid_table(context.get());
        auto const entry =
            std::ranges::find_if(entries, [&](auto const& each) { return matches(each, meant); });
        if (entry != entries.end()) {
            scan.found = Found{std::move(context), *entry};
            return scan;
        }
        if (may_be_on(entries, meant.ifindex))
            std::ranges::move(port_states(context.get(), meant.layer()),
                              std::back_inserter(scan.ports));
        scan.opened.push_back(std::move(context));
    }
    return scan;
}

// Waits until a device reports that its GIDs changed, or for 50 ms (a new device sends no event).
void wait_for_change(std::vector<VerbsContext> const& devices, Deadline deadline) {
    std::vector<pollfd> fds;
    fds.reserve(devices.size());
    for (auto const& device : devices) fds.push_back({device->async_fd, POLLIN, 0});
    auto const left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Steady::now());
    auto const moment = std::clamp<long>(left.count(), 0, 50);
    ::poll(fds.data(), fds.size(), static_cast<int>(moment));
}

Error nothing_found(EndpointOptions const& options, Scan const& scan) {
    if (auto const judged = judge_ports(scan.ports); !judged) return judged.error();
    auto const where = options.ifname.empty() ? std::string("this machine") : options.ifname;
    Error error{Problem::unsupported, {}, {}};
    std::string reasons;
    for (auto const& reason : scan.reasons) reasons += "; " + reason;
    if (!scan.names.empty() && options.port_guid) {
        error.detail =
            fmt::format("no RDMA device has a port with GUID {} (devices: {}{})",
                        to_string(*options.port_guid), fmt::join(scan.names, ", "), reasons);
        error.remedy =
            "compare it with ibstat's \"Port GUID\": a GUID that was set later counts when the "
            "VF's driver is bound again, so detach the VF and attach it again";
        return error;
    }
    if (!scan.names.empty()) {
        error.detail =
            fmt::format("no RDMA device has a RoCE v2 GID for {} on {} (devices: {}{})",
                        to_string(options.address), where, fmt::join(scan.names, ", "), reasons);
        error.remedy =
            fmt::format("give {} the address {} and bring it up, or add an RDMA link to it", where,
                        to_string(options.address));
        return error;
    }
    error.detail = fmt::format("{} has no RDMA device{}", where, reasons);
    if (!scan.remedy.empty())
        error.remedy = scan.remedy;
    else if (::access("/sys/class/infiniband_verbs/abi_version", F_OK) != 0)
        error.remedy = "load the kernel module ib_uverbs";
    else if (::access("/dev/infiniband", F_OK) != 0)
        error.remedy = "/dev/infiniband is missing: mount devtmpfs on /dev, or load ib_uverbs";
    else
        error.remedy =
            "install the device's libibverbs provider (Debian: ibverbs-providers), or add "
            "an RDMA link: rdma link add rxe0 type rxe netdev " +
            where;
    return error;
}

Result<Endpoint> describe(Found found, EndpointOptions const& options) {
    Endpoint endpoint;
    endpoint.context = std::move(found.context);
    endpoint.device = endpoint.context->device->name;
    endpoint.number = static_cast<std::uint8_t>(found.entry.port_num);
    endpoint.gid_index = static_cast<std::uint8_t>(found.entry.gid_index);
    endpoint.gid = std::to_array(found.entry.gid.raw);
    endpoint.dscp = options.dscp;
    ibv_port_attr attributes{};
    ibv_device_attr limits{};
    int const port_error = ibv_query_port(endpoint.context.get(), endpoint.number, &attributes);
    int const device_error = ibv_query_device(endpoint.context.get(), &limits);
    if (port_error != 0 || device_error != 0) {
        auto* const context = endpoint.context.get();
        return fail(verbs_error(context,
                                fmt::format("the state of port {} can't be read", endpoint.number),
                                "ibv_query_port", port_error != 0 ? port_error : device_error));
    }
    endpoint.path_mtu = mtu_bytes(attributes.active_mtu);
    endpoint.software = is_software(limits);
    endpoint.reads_max = static_cast<std::uint8_t>(std::clamp(limits.max_qp_rd_atom, 1, 16));
    endpoint.reads_issued_max =
        static_cast<std::uint8_t>(std::clamp(limits.max_qp_init_rd_atom, 1, 16));
    auto const needed = options.port_guid ? LinkLayer::infiniband : LinkLayer::ethernet;
    VFMGR_CHECK(judge_port(
        port_state(endpoint.context.get(), endpoint.number, limits, attributes, needed)));
    if (options.port_guid) {
        VFMGR_TRY(endpoint.subnet, read_subnet_port(endpoint.context.get(), endpoint.number,
                                                    attributes, options.pkey, options.grh));
    }
    endpoint.pd.reset(ibv_alloc_pd(endpoint.context.get()));
    if (!endpoint.pd)
        return fail(verbs_error(endpoint.context.get(), "a protection domain can't be allocated",
                                "ibv_alloc_pd", errno));
    return endpoint;
}

}  // namespace

bool is_software(ibv_device_attr const& device) {
    return device.vendor_id == rxe_vendor || device.vendor_id == siw_vendor;
}

Result<Endpoint> open_endpoint(EndpointOptions const& options, std::chrono::milliseconds wait) {
    auto const deadline = Steady::now() + wait;
    unsigned const ifindex = options.ifname.empty() ? 0 : ::if_nametoindex(options.ifname.c_str());
    if (!options.ifname.empty() && ifindex == 0)
        return fail(Problem::not_found, fmt::format("there is no netdev {}", options.ifname),
                    "check that the VF is plugged in");
    Meant const meant{options.address.gid(), ifindex, options.port_guid};
    while (true) {
        auto scan = scan_devices(meant);
        if (scan.found) {
            auto endpoint = describe(std::move(*scan.found), options);
            if (endpoint || Steady::now() >= deadline) return endpoint;
        } else if (Steady::now() >= deadline) {
            return fail(nothing_found(options, scan));
        }
        wait_for_change(scan.opened, deadline);
    }
}

std::string gid_hex(std::array<std::uint8_t, 16> const& gid) {
    return fmt::format("{:02x}", fmt::join(gid, ""));
}

std::string gid_text(std::array<std::uint8_t, 16> const& gid) {
    std::string text = gid_hex(gid);
    for (std::size_t at = 28; at > 0; at -= 4) text.insert(at, ":");
    return text;
}

Result<std::array<std::uint8_t, 16>> parse_gid(std::string_view hex) {
    std::array<std::uint8_t, 16> gid{};
    bool good = hex.size() == 32;
    for (std::size_t i = 0; good && i < gid.size(); ++i) {
        auto const* first = hex.data() + 2 * i;
        auto const parsed = std::from_chars(first, first + 2, gid[i], 16);
        good = parsed.ec == std::errc{} && parsed.ptr == first + 2;
    }
    if (good) return gid;
    return fail(Problem::invalid_request, "the GID is not 32 hex digits",
                "send the GID's 16 bytes as hex");
}

std::uint32_t mtu_bytes(ibv_mtu mtu) {
    return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128U << static_cast<unsigned>(mtu) : 0;
}

Result<ibv_mtu> mtu_of_bytes(std::uint32_t bytes) {
    for (auto const mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096})
        if (mtu_bytes(mtu) == bytes) return mtu;
    return fail(Problem::invalid_request, fmt::format("{} is not an RDMA path MTU", bytes),
                "use 256, 512, 1024, 2048 or 4096");
}

}  // namespace vfmgr::verify
