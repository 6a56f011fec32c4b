// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/read_devices.hpp"

#include <algorithm>
#include <charconv>

#include "api/types/text.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

std::string_view last_part(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

// The files of one device, by the last part of their names.
class Attributes {
  public:
    Attributes(Facts const& facts, std::string folder)
        : facts_(facts), folder_(std::move(folder)) {}

    [[nodiscard]] std::string_view text(std::string_view name) const {
        auto const found = facts_.files.find(folder_ + "/" + std::string(name));
        if (found == facts_.files.end() || found->second.error != 0) return {};
        std::string_view const bytes = found->second.bytes;
        return bytes.substr(0, bytes.find_last_not_of(" \n") + 1);
    }
    template <class T>
    [[nodiscard]] std::optional<T> number(std::string_view name) const {
        auto const value = parse_number(text(name));
        if (!value || !std::in_range<T>(*value)) return std::nullopt;
        return static_cast<T>(*value);
    }
    [[nodiscard]] std::optional<std::string> link(std::string_view name) const {
        auto const found = facts_.links.find(folder_ + "/" + std::string(name));
        if (found == facts_.links.end() || found->second.error != 0) return std::nullopt;
        return std::string(last_part(found->second.bytes));
    }
    [[nodiscard]] std::vector<std::string> names(std::string_view name) const {
        auto const known = facts_.names(folder_ + "/" + std::string(name));
        return known ? std::vector(known->begin(), known->end()) : std::vector<std::string>();
    }
    [[nodiscard]] std::string const& folder() const { return folder_; }

  private:
    Facts const& facts_;
    std::string folder_;
};

std::optional<PciAddress> pci_in(std::optional<std::string> const& text) {
    auto const address = text ? PciAddress::parse(*text) : Result<PciAddress>();
    return text && address ? std::optional(*address) : std::nullopt;
}

std::map<std::uint16_t, PciAddress> vfs_of(Facts const& facts, std::string const& folder) {
    std::map<std::uint16_t, PciAddress> vfs;
    auto const prefix = folder + "/virtfn";
    for (auto at = facts.links.lower_bound(prefix);
         at != facts.links.end() && at->first.starts_with(prefix); ++at) {
        auto const index =
            parse_digits(std::string_view(at->first).substr(prefix.size()), {.max = UINT16_MAX});
        auto const address = PciAddress::parse(last_part(at->second.bytes));
        if (index && address) vfs.emplace(static_cast<std::uint16_t>(*index), *address);
    }
    return vfs;
}

PciDevice read_pci_device(Facts const& facts, PciAddress const& address) {
    constexpr std::string_view devices = "/sys/bus/pci/devices/";
    Attributes const of(facts, std::string(devices) + to_string(address));
    PciDevice device;
    device.address = address;
    device.vendor = of.number<std::uint16_t>("vendor").value_or(0);
    device.device = of.number<std::uint16_t>("device").value_or(0);
    device.subsystem_vendor = of.number<std::uint16_t>("subsystem_vendor").value_or(0);
    device.subsystem_device = of.number<std::uint16_t>("subsystem_device").value_or(0);
    device.class_code = of.number<std::uint32_t>("class").value_or(0);
    device.revision = of.number<std::uint8_t>("revision").value_or(0);
    device.numa_node = of.number<int>("numa_node");
    if (device.numa_node && *device.numa_node < 0) device.numa_node.reset();
    device.driver = of.link("driver");
    device.iommu_group = of.link("iommu_group");
    device.total_vfs = of.number<std::uint16_t>("sriov_totalvfs");
    device.vfs = vfs_of(facts, of.folder());
    device.pf = pci_in(of.link("physfn"));
    if (auto const path = facts.target(of.folder())) {
        device.above = parse_pci_path(*path);
        std::erase(device.above, address);
    }
    device.speed_gts = parse_link_speed(of.text("current_link_speed"));
    device.speed_gts_max = parse_link_speed(of.text("max_link_speed"));
    device.width = of.number<int>("current_link_width");
    device.width_max = of.number<int>("max_link_width");
    device.netdevs = of.names("net");
    device.rdma_devices = of.names("infiniband");
    return device;
}

MachineNetdev read_netdev(Facts const& facts, std::string const& name) {
    constexpr unsigned up_flag = 1;  // IFF_UP
    Attributes const of(facts, "/sys/class/net/" + name);
    MachineNetdev netdev;
    netdev.name = name;
    netdev.ifindex = of.number<int>("ifindex").value_or(0);
    if (auto const mac = MacAddress::parse(of.text("address"))) netdev.mac = *mac;
    netdev.hardware_type = of.number<int>("type").value_or(0);
    netdev.mtu = of.number<int>("mtu").value_or(0);
    netdev.up = (of.number<std::uint32_t>("flags").value_or(0) & up_flag) != 0;
    if (auto const carrier = of.number<int>("carrier")) netdev.carrier = *carrier == 1;
    netdev.speed_mbps = of.number<int>("speed");
    if (netdev.speed_mbps && *netdev.speed_mbps <= 0) netdev.speed_mbps.reset();
    netdev.pci = pci_in(of.link("device"));
    netdev.master = of.link("master");
    netdev.phys_port_name = of.text("phys_port_name");
    netdev.dev_port = of.number<int>("dev_port").value_or(0);
    return netdev;
}

std::vector<Gid> read_gids(Facts const& facts, std::string const& port) {
    std::vector<Gid> gids;
    auto const prefix = port + "/gids/";
    Attributes const of(facts, port);
    for (auto at = facts.files.lower_bound(prefix);
         at != facts.files.end() && at->first.starts_with(prefix); ++at) {
        auto const index = std::string(at->first.substr(prefix.size()));
        auto const number = parse_digits(index, {.max = INT32_MAX});
        auto const gid = of.text("gids/" + index);
        // mlx4 shows free slots of InfiniBand with the prefix.
        constexpr std::string_view free_slot = "fe80:0000:0000:0000:0000:0000:0000:0000";
        if (!number || gid.find_first_not_of("0:") == gid.npos || gid == free_slot) continue;
        gids.push_back({static_cast<int>(*number), std::string(gid),
                        std::string(of.text("gid_attrs/types/" + index)),
                        std::string(of.text("gid_attrs/ndevs/" + index))});
    }
    std::ranges::sort(gids, {}, &Gid::index);
    return gids;
}

MachineRdmaPort read_rdma_port(Facts const& facts, std::string const& folder, int number) {
    Attributes const of(facts, folder);
    MachineRdmaPort port;
    port.number = number;
    port.state = parse_port_state(of.text("state"));
    port.phys_state = parse_port_state(of.text("phys_state"));
    port.link_layer = of.text("link_layer");
    port.rate = of.text("rate");
    port.sm_lid = of.number<unsigned>("sm_lid");
    port.gids = read_gids(facts, folder);
    return port;
}

// Ports are not listed: their numbers are in the paths of their files.
std::set<int> port_numbers(Facts const& facts, std::string const& device) {
    std::set<int> numbers;
    auto const prefix = device + "/ports/";
    for (auto at = facts.files.lower_bound(prefix);
         at != facts.files.end() && at->first.starts_with(prefix); ++at) {
        auto rest = std::string_view(at->first).substr(prefix.size());
        auto const number = take_until(rest, '/');
        if (auto const parsed = number ? parse_digits(*number, {.max = 255}) : std::nullopt)
            numbers.insert(static_cast<int>(*parsed));
    }
    return numbers;
}

MachineRdmaDevice read_rdma_device(Facts const& facts, std::string const& name) {
    Attributes const of(facts, "/sys/class/infiniband/" + name);
    MachineRdmaDevice device;
    device.name = name;
    if (auto const guid = Guid::parse(of.text("node_guid"))) device.node_guid = *guid;
    device.firmware = of.text("fw_ver");
    device.hca_type = of.text("hca_type");
    device.board_id = of.text("board_id");
    device.pci = pci_in(of.link("device"));
    device.parent = of.text("parent");
    for (int const number : port_numbers(facts, of.folder()))
        device.ports.push_back(
            read_rdma_port(facts, of.folder() + "/ports/" + std::to_string(number), number));
    return device;
}

}  // namespace

bool is_network(PciDevice const& device) {
    return device.class_code >> 16U == 0x02;
}
bool is_bridge(PciDevice const& device) {
    return device.class_code >> 8U == 0x0604;
}
bool is_nvidia_gpu(PciDevice const& device) {
    return device.vendor == vendor_nvidia && device.class_code >> 16U == 0x03;
}

std::optional<std::int64_t> parse_number(std::string_view text) {
    bool const hexadecimal = text.starts_with("0x");
    if (hexadecimal) text.remove_prefix(2);
    if (hexadecimal && text.starts_with('-')) return std::nullopt;
    std::int64_t number = 0;
    auto const* const end = text.data() + text.size();
    auto const [stopped, error] = std::from_chars(text.data(), end, number, hexadecimal ? 16 : 10);
    return error == std::errc{} && stopped == end ? std::optional(number) : std::nullopt;
}

std::optional<double> parse_link_speed(std::string_view text) {
    auto const unit = text.find(" GT/s");
    if (unit == text.npos) return std::nullopt;
    double speed = 0;
    auto const* const end = text.data() + unit;
    auto const [stopped, error] = std::from_chars(text.data(), end, speed);
    bool const good = error == std::errc{} && stopped == end && speed > 0 && speed < 1e6;
    return good ? std::optional(speed) : std::nullopt;
}

std::string_view parse_port_state(std::string_view text) {
    auto const colon = text.find(": ");
    return colon == text.npos ? text : text.substr(colon + 2);
}

std::vector<PciAddress> parse_pci_path(std::string_view target) {
    std::vector<PciAddress> path;
    while (!target.empty())
        if (auto const address = PciAddress::parse(take_part(target, '/')))
            path.push_back(*address);
    return path;
}

Known<std::vector<PciDevice>> read_pci_devices(Facts const& facts) {
    auto const names = facts.names("/sys/bus/pci/devices");
    if (!names) return tl::unexpected(names.error());
    std::vector<PciDevice> devices;
    for (auto const& name : *names)
        if (auto const address = PciAddress::parse(name))
            devices.push_back(read_pci_device(facts, *address));
    std::ranges::sort(devices, {}, &PciDevice::address);
    return devices;
}

Known<std::vector<MachineNetdev>> read_netdevs(Facts const& facts) {
    auto const names = facts.names("/sys/class/net");
    if (!names) return tl::unexpected(names.error());
    std::vector<MachineNetdev> netdevs;
    for (auto const& name : *names)
        if (name != "bonding_masters") netdevs.push_back(read_netdev(facts, name));
    return netdevs;
}

Known<std::vector<MachineRdmaDevice>> read_rdma_devices(Facts const& facts) {
    auto const names = facts.names("/sys/class/infiniband");
    if (!names) return tl::unexpected(names.error());
    std::vector<MachineRdmaDevice> devices;
    for (auto const& name : *names) devices.push_back(read_rdma_device(facts, name));
    return devices;
}

}  // namespace vfmgr::checks
