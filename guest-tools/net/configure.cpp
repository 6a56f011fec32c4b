// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/configure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "api/os/file.hpp"
#include "api/types/json.hpp"
#include "guest-tools/net/address_check.hpp"
#include "guest-tools/net/find_vf.hpp"
#include "guest-tools/net/ib_port.hpp"
#include "vfmgr/netlink/ip.hpp"
#include "vfmgr/netlink/monitor.hpp"
#include "vfmgr/netlink/rdma.hpp"

namespace vfmgr::guest {
namespace {

namespace fs = std::filesystem;

constexpr mode_t readable_by_all = 0644;

}  // namespace

template <class F, Of<Configured> V>
void fields(F& f, V& configured) {
    f.value("attachment", configured.attachment);
    f.maybe("mac", configured.mac);
    f.maybe("guid", configured.guid);
    f.value("ifname", configured.ifname);
    f.value("ifindex", configured.ifindex);
    f.value("address", configured.address);
    f.value("prefix_length", configured.prefix_length);
    f.value("mtu", configured.mtu);
    f.value("rdma_device", configured.rdma_device);
    f.value("rdma_device_ours", configured.rdma_device_ours);
    f.defaulted("arp_before", configured.arp_before);
    f.value("complete", configured.complete);
}

bool fits_file_name(std::string_view attachment, std::string_view also) {
    constexpr std::size_t length_max = 64;
    return !attachment.empty() && attachment.size() <= length_max &&
           std::ranges::all_of(attachment, [&](unsigned char letter) {
               return std::isalnum(letter) != 0 ||
                      also.find(static_cast<char>(letter)) != also.npos;
           });
}

std::string StateFolder::file(std::string const& attachment) const {
    return path_ + "/" + attachment + ".json";
}

std::vector<Configured> StateFolder::load() const {
    std::vector<Configured> all;
    for (auto const& each : paths_in(path_)) {
        if (each.extension() != ".json") continue;
        auto const text = read_file(each);
        if (auto configured = from_json_text<Configured>(text.value_or("")))
            all.push_back(std::move(*configured));
    }
    return all;
}

Result<void> StateFolder::save(Configured const& configured) const {
    std::error_code failed;
    fs::create_directories(path_, failed);
    auto const target = file(configured.attachment);
    auto saved = replace_file(target, to_json_text(configured) + "\n", readable_by_all);
    if (saved) return {};
    return fail({Problem::unavailable, fmt::format("{} can't be written", target),
                 "run vf-guest as root; /run must be writable", std::move(saved.error().causes)});
}

void StateFolder::forget(std::string const& attachment) const {
    std::error_code ignored;
    fs::remove(file(attachment), ignored);
}

namespace {

constexpr char const* sysfs = "/sys";
constexpr char const* proc = "/proc";
constexpr std::chrono::seconds hardware_time{10};

// Finds the netdev by its ifindex: udev renames a new netdev while it is down, and since Linux 6.2
// also while it is up.
Result<Netdev> netdev_now(NlSocket& socket, Netdev const& known, Deadline deadline) {
    VFMGR_TRY(auto const netdevs, list_netdevs(socket, deadline));
    auto const found = std::ranges::find(netdevs, known.ifindex, &Netdev::ifindex);
    if (found != netdevs.end()) return *found;
    return fail(Problem::not_found, fmt::format("{} is gone", known.name),
                "check that the VF is plugged in");
}

Result<Netdev> await_carrier(NlSocket& socket, EventMonitor& monitor, Netdev netdev,
                             Deadline deadline) {
    VFMGR_TRY(auto const waited, wait_until(monitor, deadline, [&]() -> Result<bool> {
                  VFMGR_TRY(netdev, netdev_now(socket, netdev, deadline));
                  return netdev.up && netdev.carrier;
              }));
    if (waited == Waited::holds) return netdev;
    return fail(Problem::timed_out, fmt::format("{} has no carrier", netdev.name),
                "bring up the PF on the host and check its cable; link_state of the VF must not be "
                "disable");
}

// Returns nullopt when the netdev has none.
Result<std::optional<RdmaDevice>> rdma_device_of(int ifindex, Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::rdma));
    VFMGR_TRY(auto const devices, list_rdma_devices(socket, deadline));
    auto const* const found = rdma_device_on(devices, ifindex);
    return found ? std::optional(*found) : std::nullopt;
}

// A driver on the auxiliary bus creates the device some time after the netdev.
Result<std::optional<RdmaDevice>> await_hardware(EventMonitor& monitor, Netdev const& netdev,
                                                 Deadline deadline) {
    std::optional<RdmaDevice> found;
    auto const until = std::min(deadline, std::chrono::steady_clock::now() + hardware_time);
    VFMGR_CHECK(wait_until(monitor, until, [&]() -> Result<bool> {
        VFMGR_TRY(found, rdma_device_of(netdev.ifindex, deadline));
        return found.has_value();
    }));
    return found;
}

Result<void> add_soft_link(Configured& configured, StateFolder const& state, Deadline deadline) {
    VFMGR_CHECK(need_module(sysfs, "rdma_rxe", deadline));
    configured.rdma_device = "rxe_" + configured.attachment;
    configured.rdma_device_ours = true;
    VFMGR_CHECK(state.save(configured));
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::rdma));
    return add_rdma_link(socket, {configured.rdma_device, SoftRdmaType::rxe, configured.ifname},
                         deadline);
}

Result<void> provide_rdma(Configured& configured, Netdev const& netdev, EventMonitor& monitor,
                          StateFolder const& state, Deadline deadline) {
    // Without this module there is no /dev/infiniband/uverbsN, whatever the hardware.
    VFMGR_CHECK(need_module(sysfs, "ib_uverbs", deadline));
    VFMGR_TRY(auto device, rdma_device_of(netdev.ifindex, deadline));
    if (!device && expects_rdma_device(sysfs, netdev.name)) {
        VFMGR_TRY(device, await_hardware(monitor, netdev, deadline));
    }
    if (!device) return add_soft_link(configured, state, deadline);
    configured.rdma_device = device->name;
    return {};
}

// IPoIB needs it: SoftRoCE does not run on an InfiniBand port.
Result<void> provide_infiniband(Configured& configured, Guid const& port_guid,
                                EventMonitor& monitor, Deadline deadline) {
    VFMGR_CHECK(need_module(sysfs, "ib_uverbs", deadline));
    std::optional<IbPort> found;
    auto const until = std::min(deadline, std::chrono::steady_clock::now() + hardware_time);
    VFMGR_CHECK(wait_until(monitor, until, [&]() -> Result<bool> {
        found = find_ib_port(sysfs, port_guid);
        return found.has_value();
    }));
    if (!found)
        return fail(Problem::unsupported,
                    fmt::format("no RDMA device has the port GUID {} of {}", to_string(port_guid),
                                configured.ifname),
                    "compare it with ibstat's \"Port GUID\"; check the kernel log: dmesg | tail");
    configured.rdma_device = found->device;
    return {};
}

// Before the carrier is awaited: without its partition IPoIB has none, or that of another.
Result<void> check_partition(GuestAttachment const& desired, Netdev const& netdev) {
    bool const differs =
        desired.pkey && netdev.pkey && ((*netdev.pkey ^ desired.pkey->key) & 0x7fffU) != 0;
    if (!differs) return {};
    return fail(Problem::unavailable,
                fmt::format("{} is in partition 0x{:04x}, but the network's is 0x{:04x}",
                            netdev.name, *netdev.pkey & 0x7fffU, desired.pkey->key),
                "the subnet manager gives a port its partitions, the first one to IPoIB: vfctl ib "
                "partitions on the host prints the lines that it needs");
}

// IPoIB lowers its MTU to that of the partition's multicast group.
Result<void> check_group_mtu(GuestAttachment const& desired, Netdev const& netdev) {
    if (!desired.guid || netdev.mtu >= desired.mtu) return {};
    return fail(Problem::unavailable,
                fmt::format("{} has MTU {}, but the network's is {}: the partition's group for "
                            "IPoIB allows no more",
                            netdev.name, netdev.mtu, desired.mtu),
                "lower the network's MTU, or give the partition mtu=5 in the subnet manager's "
                "partitions.conf");
}

Result<void> set_arp(Configured& configured, StateFolder const& state) {
    if (configured.address.family != IpAddress::Family::v4) return {};
    VFMGR_TRY(configured.arp_before, read_arp_settings(proc, configured.ifname));
    VFMGR_CHECK(state.save(configured));
    return write_arp_settings(proc, configured.ifname, arp_settings_of_vf);
}

NetdevAddress address_of(Configured const& configured) {
    return {configured.ifindex, configured.address, configured.prefix_length};
}

// Always adds a route of its own, not only beside another NIC on the same network: such a NIC may
// come later, or be the VM's own, and what runs by then must not need another set-up.
Result<void> give_address(NlSocket& socket, GuestAttachment const& desired, Configured& configured,
                          StateFolder const& state, Deadline deadline) {
    VFMGR_CHECK(set_arp(configured, state));
    if (!desired.run) {
        VFMGR_TRY(auto const own, list_netdevs(socket, deadline));
        auto const netdev = std::ranges::find(own, configured.ifindex, &Netdev::ifindex);
        if (netdev != own.end()) VFMGR_CHECK(check_unclaimed(desired.address, *netdev, own));
    }
    VFMGR_CHECK(add_address(socket, address_of(configured), deadline));
    return add_source_route(socket, address_of(configured), deadline);
}

// Removes the rule in any case: it stays when the netdev goes.
Result<void> take_address(NlSocket& socket, Configured const& configured, Deadline deadline) {
    VFMGR_CHECK(remove_source_route(socket, address_of(configured), deadline));
    VFMGR_TRY(auto const netdevs, list_netdevs(socket, deadline));
    auto const here = std::ranges::find(netdevs, configured.ifindex, &Netdev::ifindex);
    if (here == netdevs.end() || here->mac != configured.mac || here->port_guid != configured.guid)
        return {};
    VFMGR_CHECK(remove_address(socket, address_of(configured), deadline));
    VFMGR_CHECK(write_arp_settings(proc, here->name, configured.arp_before));
    return change_netdev(socket, here->name,
                         {.ifindex = here->ifindex, .up = false, .mtu = std::nullopt}, deadline);
}

}  // namespace

Result<Configured> configure(GuestAttachment const& desired, Netdev const& known,
                             StateFolder const& state, Deadline deadline) {
    VFMGR_TRY(auto monitor, EventMonitor::open());
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    Configured configured{.attachment = desired.attachment,
                          .mac = desired.mac,
                          .guid = desired.guid,
                          .ifname = known.name,
                          .ifindex = known.ifindex,
                          .address = desired.address,
                          .prefix_length = desired.prefix_length,
                          .mtu = desired.mtu};
    VFMGR_CHECK(check_partition(desired, known));
    VFMGR_CHECK(state.save(configured));
    VFMGR_CHECK(change_netdev(
        socket, known.name, {.ifindex = known.ifindex, .up = true, .mtu = desired.mtu}, deadline));
    VFMGR_TRY(auto const netdev, await_carrier(socket, monitor, known, deadline));
    configured.ifname = netdev.name;
    VFMGR_CHECK(check_group_mtu(desired, netdev));
    VFMGR_CHECK(give_address(socket, desired, configured, state, deadline));
    if (desired.rdma != RdmaMode::none && desired.guid)
        VFMGR_CHECK(provide_infiniband(configured, *desired.guid, monitor, deadline));
    else if (desired.rdma != RdmaMode::none)
        VFMGR_CHECK(provide_rdma(configured, netdev, monitor, state, deadline));
    configured.complete = true;
    VFMGR_CHECK(state.save(configured));
    return configured;
}

Result<void> clean_up(Configured const& configured, StateFolder const& state, Deadline deadline) {
    if (configured.rdma_device_ours) {
        VFMGR_TRY(auto rdma, NlSocket::open(NlProtocol::rdma));
        VFMGR_TRY(auto const devices, list_rdma_devices(rdma, deadline));
        auto const ours = std::ranges::find(devices, configured.rdma_device, &RdmaDevice::name);
        if (ours != devices.end()) VFMGR_CHECK(remove_rdma_link(rdma, *ours, deadline));
    }
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::route));
    VFMGR_CHECK(take_address(socket, configured, deadline));
    state.forget(configured.attachment);
    return {};
}

}  // namespace vfmgr::guest

template struct vfmgr::Json<vfmgr::guest::Configured>;
