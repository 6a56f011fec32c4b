// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/nic.hpp"

#include <fmt/format.h>
#include <linux/genetlink.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "vfmgr/machine/lines.hpp"
#include "vfmgr/netlink/devlink.hpp"
#include "vfmgr/netlink/qos.hpp"
#include "vfmgr/netlink/rdma.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::array<std::string_view, 2> firmware_tools{"mstconfig", "mlxconfig"};

CommandFact const* firmware_answer(Machine const& machine, PciAddress const& function) {
    for (auto const tool : firmware_tools)
        if (auto const answer = machine.facts.command(firmware_query(tool, function)))
            return *answer;
    return nullptr;
}

// Tools that are given an address print it, some without the domain. The functions of a card share
// its settings.
bool is_of_another_card(FirmwareConfiguration const& answer, PciAddress const& function) {
    auto const answered = PciAddress::parse(answer.device);
    return answered && !share_slot(*answered, function);
}

}  // namespace

bool is_connectx(PciDevice const& device) {
    return device.vendor() == vendor_mellanox && is_network(device);
}

bool is_vf(PciDevice const& device) {
    if (device.pf.peek()) return true;
    // Other vendors' VFs show it by their link to the PF alone.
    if (device.vendor() != vendor_mellanox) return device.pf().has_value();
    // As mlx4_core and mlx5_core list them [src mlx4/main.c, mlx5/core/main.c].
    constexpr std::array<std::uint16_t, 10> vfs{0x1002, 0x1004, 0x1012, 0x1014, 0x1016,
                                                0x1018, 0x101a, 0x101c, 0x101e, 0xa2d3};
    return std::ranges::find(vfs, device.device()) != vfs.end();
}

bool on_vfio(PciDevice const& device) {
    return device.driver() && contains(*device.driver(), "vfio");
}

std::string file_of(PciAddress const& function, std::string_view name) {
    return fmt::format("/sys/bus/pci/devices/{}/{}", to_string(function), name);
}

std::vector<PciDevice const*> sriov_nics(Machine const& machine) {
    return functions_of(machine, [](PciDevice const& device) {
        return is_network(device) && !is_vf(device) && (device.total_vfs() || is_connectx(device));
    });
}

std::vector<PciDevice const*> connectx_cards(Machine const& machine) {
    return functions_of(machine, [](PciDevice const& device) {
        return is_connectx(device) && !is_vf(device) && device.address.function == 0;
    });
}

std::string name_of(Machine const& machine, PciDevice const& device) {
    for (auto const& name : device.netdevs()) {
        // A PF in switchdev mode has its VFs' representors next to its own netdev.
        auto const port = machine.facts.text("/sys/class/net/" + name + "/phys_port_name");
        if (port.value_or("").find("vf") == std::string_view::npos)
            return fmt::format("{} ({})", name, to_string(device.address));
    }
    return to_string(device.address);
}

Known<FirmwareConfiguration> firmware_of(Machine const& machine, PciAddress const& function) {
    auto const* const answer = firmware_answer(machine, function);
    auto const query = firmware_query(firmware_tool(machine), function);
    if (!answer) return tl::unexpected(machine.facts.command(query).error());
    auto configuration = parse_firmware_configuration(answer->out);
    if (configuration.parameters.empty()) return tl::unexpected(Unknown{query, EIO});
    if (is_of_another_card(configuration, function)) return tl::unexpected(Unknown{query, EXDEV});
    return configuration;
}

std::string firmware_complaint(Machine const& machine, PciAddress const& function) {
    auto const* const answer = firmware_answer(machine, function);
    if (!answer) return {};
    if (auto const read = parse_firmware_configuration(answer->out);
        is_of_another_card(read, function))
        return "the answer is about another card, " + read.device;
    auto text = answer->err.empty() ? answer->out : answer->err;
    text.erase(text.find_last_not_of(" \n") + 1);
    std::ranges::replace(text, '\n', ' ');
    constexpr std::size_t text_bytes_max = 200;
    return text.empty() ? fmt::format("exit status {}", answer->exit_status)
                        : text.substr(0, text_bytes_max);
}

std::string firmware_tool(Machine const& machine) {
    for (auto const tool : firmware_tools)
        for (auto const& [line, fact] : machine.facts.unnoted().commands)
            if (line.starts_with(tool)) return std::string(tool);
    return std::string(firmware_tools[0]);
}

Known<PciConfiguration> configuration_of(Machine const& machine, PciAddress const& address) {
    auto const path = file_of(address, "config");
    // text() won't do: a last byte of 0x0a is no newline here.
    if (auto const known = machine.facts.text(path); !known) return tl::unexpected(known.error());
    auto const& files = machine.facts.unnoted().files;
    auto configuration = parse_pci_configuration(files.find(path)->second.bytes);
    if (!configuration) return tl::unexpected(Unknown{path, EIO});
    return *configuration;
}

namespace {

constexpr std::chrono::seconds question_time_max{5};

Deadline soon_enough() {
    return std::chrono::steady_clock::now() + question_time_max;
}

NetlinkFact fact_of(std::vector<NlAnswer> const& answers) {
    NetlinkFact fact;
    for (auto const& answer : answers)
        fact.payloads.emplace_back(reinterpret_cast<char const*>(answer.payload.data()),
                                   answer.payload.size());
    return fact;
}

NetlinkFact asked(NlSocket& socket, NlRequest request, std::string const& call) {
    auto const reply = socket.ask(std::move(request), call, soon_enough());
    if (!reply) return {{}, EIO};
    if (!reply->ack.ok()) return {{}, reply->ack.error};
    return fact_of(reply->answers);
}

NetlinkFact dumped(NlSocket& socket, NlRequest request, std::string const& call) {
    auto const answers = socket.dump(std::move(request), call, soon_enough());
    return answers ? fact_of(*answers) : NetlinkFact{{}, EIO};
}

// Netdevs of a PCI function, a virtio device or the like: not bonds, VLANs, bridges.
std::vector<std::string> physical_netdevs(Facts const& facts) {
    std::vector<std::string> names;
    for (auto const& [path, fact] : facts.links) {
        if (!matches("/sys/class/net/*/device", path) || fact.error != 0) continue;
        auto const name = path.substr(std::string_view("/sys/class/net/").size());
        names.push_back(name.substr(0, name.find('/')));
    }
    return names;
}

// A PF's own netdev, if the PF has VFs. In switchdev mode VFs' representors link to the PF, too.
bool has_vfs(Facts const& facts, std::string const& netdev) {
    auto const device = facts.target("/sys/class/net/" + netdev + "/device");
    if (!device) return false;
    auto const address = std::string(device->substr(device->rfind('/') + 1));
    auto const port = facts.text("/sys/class/net/" + netdev + "/phys_port_name").value_or("");
    return !contains(port, "vf") &&
           facts.target("/sys/bus/pci/devices/" + address + "/virtfn0").has_value();
}

// Every address of every netdev.
NlRequest addresses_request() {
    NlRequest request(RTM_GETADDR, NLM_F_DUMP);
    request.header(ifaddrmsg{});
    return request;
}

// Requests the VFs' settings without their statistics: twice as many VFs fit.
NlRequest vf_settings_request(std::string const& netdev) {
    NlRequest request(RTM_GETLINK, 0);
    request.header(ifinfomsg{});
    request.put_text(IFLA_IFNAME, netdev);
    request.put<std::uint32_t>(IFLA_EXT_MASK, RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS);
    return request;
}

// ethtool's family number in generic netlink on this kernel.
std::optional<std::uint16_t> ethtool_family(NlSocket& generic) {
    auto const reply =
        generic.ask(family_request("ethtool"), "CTRL_CMD_GETFAMILY ethtool", soon_enough());
    if (!reply) return std::nullopt;
    for (auto const& answer : reply->answers)
        if (auto const family = parse_family(after(answer.payload, sizeof(genlmsghdr))))
            return family;
    return std::nullopt;
}

std::uint16_t nldev(unsigned command) {
    return static_cast<std::uint16_t>((static_cast<unsigned>(RDMA_NL_NLDEV) << 10U) + command);
}

}  // namespace

void ask_about_netdevs(Facts& facts) {
    auto const names = physical_netdevs(facts);
    auto const ask = [&](NlSocket& socket, NlRequest request, std::string const& call) {
        facts.netlink.insert_or_assign(call, asked(socket, std::move(request), call));
    };
    auto socket = NlSocket::open(NlProtocol::route);
    facts.netlink["RTM_GETADDR"] = socket ? dumped(*socket, addresses_request(), "RTM_GETADDR")
                                          : NetlinkFact{{}, EPROTONOSUPPORT};
    if (socket) {
        facts.patterns.insert("DCB_CMD_IEEE_GET *");
        for (auto const& name : names) ask(*socket, dcb_request(name), "DCB_CMD_IEEE_GET " + name);
        facts.patterns.insert("RTM_GETLINK * VFs");
        for (auto const& name : names)
            if (has_vfs(facts, name))
                ask(*socket, vf_settings_request(name), "RTM_GETLINK " + name + " VFs");
    }
    auto generic = NlSocket::open(NlProtocol::generic);
    auto const family = generic ? ethtool_family(*generic) : std::nullopt;
    if (!family) return;
    facts.patterns.insert("ETHTOOL_MSG_PAUSE_GET *");
    for (auto const& name : names)
        ask(*generic, pause_request(*family, name), "ETHTOOL_MSG_PAUSE_GET " + name);
}

void ask_about_rdma_devices(Facts& facts) {
    facts.patterns.insert("RDMA_NLDEV_CMD_GET");
    auto rdma = NlSocket::open(NlProtocol::rdma);
    if (!rdma) return;  // a kernel without RDMA has no such socket
    std::string const call = "RDMA_NLDEV_CMD_GET";
    auto const devices = dumped(*rdma, NlRequest(nldev(RDMA_NLDEV_CMD_GET), NLM_F_DUMP), call);
    facts.netlink.insert_or_assign(call, devices);
    facts.patterns.insert("RDMA_NLDEV_CMD_PORT_GET *");
    for (auto const& payload : devices.payloads) {
        auto const device = parse_rdma_device(std::as_bytes(std::span(payload)));
        if (!device) continue;
        auto const about_ports = "RDMA_NLDEV_CMD_PORT_GET " + device->name;
        NlRequest request(nldev(RDMA_NLDEV_CMD_PORT_GET), NLM_F_DUMP);
        request.put(RDMA_NLDEV_ATTR_DEV_INDEX, device->index);
        facts.netlink.insert_or_assign(about_ports, dumped(*rdma, std::move(request), about_ports));
    }
}

}  // namespace vfmgr::checks
