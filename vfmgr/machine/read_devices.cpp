// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/read_devices.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "api/types/text.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

std::string_view last_part(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

// Returns a parser's value for text that it does not understand: the field is then unread.
constexpr int not_understood = EBADMSG;

std::string_view trimmed_end(std::string_view bytes) {
    return bytes.substr(0, bytes.find_last_not_of(" \n") + 1);
}

// The files, links and folders of one device, by the last part of their names.
class Attributes {
    // Comes before what calls it, because its type is deduced.
    template <class Parse>
    [[nodiscard]] auto field(Known<std::string_view> const& text, Parse parse) const {
        using Value = decltype(parse(std::string_view()));
        return text ? Field<Value>(parse(*text)) : Field<Value>(Value{}, text.error(), reads_);
    }

  public:
    Attributes(Facts const& facts, Reads& reads, std::string folder)
        : facts_(facts), reads_(reads), folder_(std::move(folder)) {}

    // Parses the file's text; an absent file has none.
    template <class Parse>
    [[nodiscard]] auto parsed(std::string_view name, Parse parse) const {
        return field(facts_.text(path(name)).map(trimmed_end), parse);
    }
    [[nodiscard]] Field<std::string> text(std::string_view name) const {
        return parsed(name, [](std::string_view text) { return std::string(text); });
    }
    // A number in a form that nobody expects is as good as none.
    template <class T>
    [[nodiscard]] Field<std::optional<T>> optional_number(std::string_view name) const {
        auto const text = facts_.text(path(name));
        if (!text) return {std::nullopt, text.error(), reads_};
        auto const value = parse_number(trimmed_end(*text));
        if (!value) return {std::nullopt, Unknown{path(name), not_understood}, reads_};
        return std::in_range<T>(*value) ? std::optional(static_cast<T>(*value)) : std::nullopt;
    }
    template <class T>
    [[nodiscard]] Field<T> number(std::string_view name) const {
        return optional_number<T>(name).map([](auto const& value) { return value.value_or(T{}); });
    }
    // The last part of a link's target.
    template <class Parse>
    [[nodiscard]] auto link(std::string_view name, Parse parse) const {
        return field(facts_.target(path(name)).map(last_part), parse);
    }
    [[nodiscard]] Field<std::optional<std::string>> link(std::string_view name) const {
        return link(name, [](std::string_view part) { return std::optional(std::string(part)); });
    }
    [[nodiscard]] Field<std::vector<std::string>> names(std::string_view name) const {
        auto const known = facts_.names(path(name));
        if (known) return std::vector(known->begin(), known->end());
        return {{}, known.error(), reads_};
    }
    // Collects a value from each of the map's entries below `name`. The first that can't be read,
    // or a pattern that was not looked up, leaves the whole unread.
    template <class Map, class Value, class Take>
    [[nodiscard]] Field<Value> each(Map const& map, std::string_view name, std::string_view pattern,
                                    Value all, Take take) const {
        auto const prefix = path(name);
        std::optional<Unknown> unread;
        if (!facts_.looked_up(pattern)) unread = Unknown{prefix + "*", 0};
        for (auto at = map.lower_bound(prefix); at != map.end() && at->first.starts_with(prefix);
             ++at) {
            if (at->second.error == 0)
                take(all, std::string_view(at->first).substr(prefix.size()), at->second.bytes);
            else if (Unknown why{at->first, at->second.error}; !unread && is_unread(why))
                unread = std::move(why);
        }
        if (unread) return {std::move(all), std::move(*unread), reads_};
        return all;
    }
    [[nodiscard]] std::string path(std::string_view name) const {
        return folder_ + "/" + std::string(name);
    }
    [[nodiscard]] std::string const& folder() const { return folder_; }

  private:
    Facts const& facts_;
    Reads& reads_;
    std::string folder_;
};

std::optional<PciAddress> pci_in(std::string_view text) {
    auto const address = PciAddress::parse(text);
    return address ? std::optional(*address) : std::nullopt;
}

// Numbers below `least` mean that there is none.
Field<std::optional<int>> at_least(int least, Field<std::optional<int>> const& field) {
    return field.map([&](std::optional<int> const& number) {
        return number && *number < least ? std::nullopt : number;
    });
}

PciDevice read_pci_device(Facts const& facts, Reads& reads, PciAddress const& address) {
    Attributes const of(facts, reads, "/sys/bus/pci/devices/" + to_string(address));
    PciDevice device;
    device.address = address;
    device.vendor = of.number<std::uint16_t>("vendor");
    device.device = of.number<std::uint16_t>("device");
    device.subsystem_vendor = of.number<std::uint16_t>("subsystem_vendor");
    device.subsystem_device = of.number<std::uint16_t>("subsystem_device");
    device.class_code = of.number<std::uint32_t>("class");
    device.revision = of.number<std::uint8_t>("revision");
    device.numa_node = at_least(0, of.optional_number<int>("numa_node"));
    device.driver = of.link("driver");
    device.iommu_group = of.link("iommu_group");
    device.total_vfs = of.optional_number<std::uint16_t>("sriov_totalvfs");
    device.vfs = of.each(facts.links, "virtfn", "/sys/bus/pci/devices/*/virtfn*",
                         std::map<std::uint16_t, PciAddress>(),
                         [](auto& vfs, std::string_view number, std::string_view target) {
                             auto const index = parse_digits(number, {.max = UINT16_MAX});
                             auto const vf = PciAddress::parse(last_part(target));
                             if (index && vf) vfs.emplace(static_cast<std::uint16_t>(*index), *vf);
                         });
    device.pf = of.link("physfn", pci_in);
    auto const place = facts.target(of.folder());
    auto path = parse_pci_path(place.value_or(""));
    std::erase(path, address);
    device.above = place ? Field(std::move(path)) : Field(std::move(path), place.error(), reads);
    device.speed_gts = of.parsed("current_link_speed", parse_link_speed);
    device.speed_gts_max = of.parsed("max_link_speed", parse_link_speed);
    device.width = of.optional_number<int>("current_link_width");
    device.width_max = of.optional_number<int>("max_link_width");
    device.netdevs = of.names("net");
    device.rdma_devices = of.names("infiniband");
    return device;
}

MachineNetdev read_netdev(Facts const& facts, Reads& reads, std::string const& name) {
    Attributes const of(facts, reads, "/sys/class/net/" + name);
    MachineNetdev netdev;
    netdev.name = name;
    netdev.ifindex = of.number<int>("ifindex");
    netdev.iflink = of.number<int>("iflink");
    netdev.mac = of.parsed("address", [](std::string_view text) {
        auto const mac = MacAddress::parse(text);
        return mac ? std::optional(*mac) : std::nullopt;
    });
    netdev.hardware_type = of.number<int>("type");
    netdev.mtu = of.number<int>("mtu");
    netdev.up = of.parsed("flags", [](std::string_view text) {
        constexpr std::int64_t up_flag = 1;  // IFF_UP
        return (parse_number(text).value_or(0) & up_flag) != 0;
    });
    netdev.carrier = of.parsed("carrier", [](std::string_view text) {
        auto const carrier = parse_number(text);
        return carrier ? std::optional(*carrier == 1) : std::nullopt;
    });
    netdev.speed_mbps = at_least(1, of.optional_number<int>("speed"));
    netdev.pci = of.link("device", pci_in);
    netdev.master = of.link("master");
    netdev.phys_port_name = of.text("phys_port_name");
    netdev.dev_port = of.number<int>("dev_port");
    return netdev;
}

Field<std::vector<Gid>> read_gids(Facts const& facts, Attributes const& of) {
    return of.each(
        facts.files, "gids/", "/sys/class/infiniband/*/ports/*/gids/*", std::vector<Gid>(),
        [&](std::vector<Gid>& gids, std::string_view index, std::string_view bytes) {
            auto const number = parse_digits(index, {.max = INT32_MAX});
            auto const gid = trimmed_end(bytes);
            // mlx4 shows free slots of InfiniBand with the prefix.
            constexpr std::string_view free_slot = "fe80:0000:0000:0000:0000:0000:0000:0000";
            if (!number || gid.find_first_not_of("0:") == gid.npos || gid == free_slot) return;
            Gid one{static_cast<int>(*number), std::string(gid),
                    of.text("gid_attrs/types/" + std::string(index)),
                    of.text("gid_attrs/ndevs/" + std::string(index))};
            gids.insert(std::ranges::upper_bound(gids, one.index, {}, &Gid::index), std::move(one));
        });
}

Field<std::string> state_of(Attributes const& of, std::string_view name) {
    return of.parsed(name,
                     [](std::string_view text) { return std::string(parse_port_state(text)); });
}

MachineRdmaPort read_rdma_port(Facts const& facts, Reads& reads, std::string const& folder,
                               int number) {
    Attributes const of(facts, reads, folder);
    MachineRdmaPort port;
    port.number = number;
    port.state = state_of(of, "state");
    port.phys_state = state_of(of, "phys_state");
    port.link_layer = of.text("link_layer");
    port.rate = of.text("rate");
    port.sm_lid = of.optional_number<unsigned>("sm_lid");
    port.gids = read_gids(facts, of);
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

MachineRdmaDevice read_rdma_device(Facts const& facts, Reads& reads, std::string const& name) {
    Attributes const of(facts, reads, "/sys/class/infiniband/" + name);
    MachineRdmaDevice device;
    device.name = name;
    device.node_guid = of.parsed("node_guid", [](std::string_view text) {
        auto const guid = Guid::parse(text);
        return guid ? std::optional(*guid) : std::nullopt;
    });
    device.firmware = of.text("fw_ver");
    device.hca_type = of.text("hca_type");
    device.board_id = of.text("board_id");
    device.pci = of.link("device", pci_in);
    device.parent = of.text("parent");
    for (int const number : port_numbers(facts, of.folder()))
        device.ports.push_back(
            read_rdma_port(facts, reads, of.folder() + "/ports/" + std::to_string(number), number));
    return device;
}

}  // namespace

bool is_network(PciDevice const& device) {
    return device.class_code() >> 16U == 0x02;
}
bool is_bridge(PciDevice const& device) {
    return device.class_code() >> 8U == 0x0604;
}
bool is_nvidia_gpu(PciDevice const& device) {
    return device.vendor() == vendor_nvidia && device.class_code() >> 16U == 0x03;
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

Known<std::vector<PciDevice>> read_pci_devices(Facts const& facts, Reads& reads) {
    auto const names = facts.names("/sys/bus/pci/devices");
    if (!names) return tl::unexpected(names.error());
    std::vector<PciDevice> devices;
    for (auto const& name : *names)
        if (auto const address = PciAddress::parse(name))
            devices.push_back(read_pci_device(facts, reads, *address));
    std::ranges::sort(devices, {}, &PciDevice::address);
    return devices;
}

Known<std::vector<MachineNetdev>> read_netdevs(Facts const& facts, Reads& reads) {
    auto const names = facts.names("/sys/class/net");
    if (!names) return tl::unexpected(names.error());
    std::vector<MachineNetdev> netdevs;
    for (auto const& name : *names)
        if (name != "bonding_masters") netdevs.push_back(read_netdev(facts, reads, name));
    return netdevs;
}

Known<std::vector<MachineRdmaDevice>> read_rdma_devices(Facts const& facts, Reads& reads) {
    auto const names = facts.names("/sys/class/infiniband");
    if (!names) return tl::unexpected(names.error());
    std::vector<MachineRdmaDevice> devices;
    for (auto const& name : *names) devices.push_back(read_rdma_device(facts, reads, name));
    return devices;
}

}  // namespace vfmgr::checks
