// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/devlink.hpp"

#include <linux/devlink.h>
#include <linux/genetlink.h>

#include <algorithm>
#include <cerrno>

namespace vfmgr {
namespace {

// From Linux 6.2 (include/uapi/linux/devlink.h); older headers lack them.
constexpr std::uint16_t function_attr_caps = 5;  // DEVLINK_PORT_FN_ATTR_CAPS
constexpr std::uint32_t function_cap_roce = 1;   // DEVLINK_PORT_FN_CAP_ROCE

// A generic netlink socket with this kernel's number for devlink.
struct Devlink {
    NlSocket socket;
    std::uint16_t family = 0;
};

NlRequest request_of(std::uint16_t family, std::uint8_t command, std::uint8_t version, int flags) {
    NlRequest request(family, flags);
    request.header(genlmsghdr{command, version, 0});
    return request;
}

NlRequest request_about(std::uint16_t family, std::uint8_t command, DevlinkDevice const& device) {
    auto request = request_of(family, command, DEVLINK_GENL_VERSION, 0);
    request.put_text(DEVLINK_ATTR_BUS_NAME, device.bus);
    request.put_text(DEVLINK_ATTR_DEV_NAME, device.name);
    return request;
}

ByteView attributes_of(NlAnswer const& answer) {
    return after(answer.payload, sizeof(genlmsghdr));
}

// Absent: this kernel has no devlink.
Result<std::optional<Devlink>> open_devlink(Deadline deadline) {
    VFMGR_TRY(auto socket, NlSocket::open(NlProtocol::generic));
    auto request = request_of(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1, 0);
    request.put_text(CTRL_ATTR_FAMILY_NAME, DEVLINK_GENL_NAME);
    std::string const call = "CTRL_CMD_GETFAMILY devlink";
    VFMGR_TRY(auto const reply, socket.ask(std::move(request), call, deadline));
    if (reply.ack.error == ENOENT) return std::nullopt;
    for (auto const& answer : reply.answers)
        if (auto const family = parse_family(attributes_of(answer)))
            return Devlink{std::move(socket), *family};
    return fail(nl_refusal(reply.ack, call, "devlink can't be queried",
                           "see the kernel's log for the reason: journalctl -k"));
}

// The answers of a driver without devlink, without a switch, or without support for the request.
bool has_none(NlAck const& ack) {
    return ack.error == ENODEV || ack.error == EOPNOTSUPP;
}

}  // namespace

DevlinkDevice devlink_device(PciAddress const& pci) {
    return {"pci", to_string(pci)};
}

std::string to_string(DevlinkDevice const& device) {
    return device.bus + "/" + device.name;
}

std::optional<std::uint16_t> parse_family(ByteView attributes) {
    return Attributes(attributes).value<std::uint16_t>(CTRL_ATTR_FAMILY_ID);
}

std::optional<EswitchMode> parse_eswitch_mode(ByteView attributes) {
    auto const mode = Attributes(attributes).value<std::uint16_t>(DEVLINK_ATTR_ESWITCH_MODE);
    if (mode == DEVLINK_ESWITCH_MODE_LEGACY) return EswitchMode::legacy;
    if (mode == DEVLINK_ESWITCH_MODE_SWITCHDEV) return EswitchMode::switchdev;
    return std::nullopt;
}

std::optional<VfPort> parse_vf_port(ByteView attributes, DevlinkDevice const& device) {
    Attributes const port(attributes);
    if (port.text(DEVLINK_ATTR_BUS_NAME) != device.bus ||
        port.text(DEVLINK_ATTR_DEV_NAME) != device.name ||
        port.value<std::uint16_t>(DEVLINK_ATTR_PORT_FLAVOUR) != DEVLINK_PORT_FLAVOUR_PCI_VF ||
        port.value<std::uint8_t>(DEVLINK_ATTR_PORT_EXTERNAL).value_or(0) != 0)
        return std::nullopt;
    auto const index = port.value<std::uint32_t>(DEVLINK_ATTR_PORT_INDEX);
    auto const vf = port.value<std::uint16_t>(DEVLINK_ATTR_PORT_PCI_VF_NUMBER);
    if (!index || !vf) return std::nullopt;
    VfPort found{*index, *vf, {}};
    auto const caps =
        port.nested(DEVLINK_ATTR_PORT_FUNCTION).value<nla_bitfield32>(function_attr_caps);
    if (caps && (caps->selector & function_cap_roce) != 0)
        found.roce = (caps->value & function_cap_roce) != 0;
    return found;
}

Result<std::optional<EswitchMode>> read_eswitch_mode(DevlinkDevice const& device,
                                                     Deadline deadline) {
    VFMGR_TRY(auto devlink, open_devlink(deadline));
    if (!devlink) return std::nullopt;
    auto const call = "DEVLINK_CMD_ESWITCH_GET " + to_string(device);
    VFMGR_TRY(auto const reply,
              devlink->socket.ask(request_about(devlink->family, DEVLINK_CMD_ESWITCH_GET, device),
                                  call, deadline));
    for (auto const& answer : reply.answers)
        if (auto const mode = parse_eswitch_mode(attributes_of(answer))) return mode;
    if (reply.ack.ok() || has_none(reply.ack)) return std::nullopt;
    return fail(nl_refusal(reply.ack, call,
                           "the switch mode of " + to_string(device) + " can't be read",
                           "run vfmgr with CAP_NET_ADMIN"));
}

Result<std::vector<std::vector<std::byte>>> dump_devlink(std::uint8_t command,
                                                         std::string const& call,
                                                         Deadline deadline) {
    std::vector<std::vector<std::byte>> all;
    VFMGR_TRY(auto devlink, open_devlink(deadline));
    if (!devlink) return all;
    VFMGR_TRY(auto const answers, devlink->socket.dump(request_of(devlink->family, command,
                                                                  DEVLINK_GENL_VERSION, NLM_F_DUMP),
                                                       call, deadline));
    for (auto const& answer : answers) {
        auto const attributes = attributes_of(answer);
        all.emplace_back(attributes.begin(), attributes.end());
    }
    return all;
}

Result<std::vector<VfPort>> list_vf_ports(DevlinkDevice const& device, Deadline deadline) {
    // Dumps the ports of all devices: kernels before 6.5 can't dump those of one.
    VFMGR_TRY(auto const answers,
              dump_devlink(DEVLINK_CMD_PORT_GET, "DEVLINK_CMD_PORT_GET", deadline));
    std::vector<VfPort> ports;
    for (auto const& answer : answers)
        if (auto port = parse_vf_port(answer, device)) ports.push_back(*port);
    return ports;
}

Result<NlAck> set_roce(DevlinkDevice const& device, VfPort const& port, bool on,
                       Deadline deadline) {
    VFMGR_TRY(auto devlink, open_devlink(deadline));
    if (!devlink) return NlAck{EOPNOTSUPP, "this kernel has no devlink"};
    auto request = request_about(devlink->family, DEVLINK_CMD_PORT_SET, device);
    request.put(DEVLINK_ATTR_PORT_INDEX, port.index);
    request.nest(DEVLINK_ATTR_PORT_FUNCTION | NLA_F_NESTED, [&](NlRequest& function) {
        function.put(function_attr_caps,
                     nla_bitfield32{on ? function_cap_roce : 0, function_cap_roce});
    });
    return devlink->socket.request(
        std::move(request),
        "DEVLINK_CMD_PORT_SET " + to_string(device) + "/" + std::to_string(port.index), deadline);
}

namespace {

// Values of DEVLINK_ATTR_PARAM_TYPE: the kernel's own numbers of attribute types.
constexpr std::uint8_t type_u8 = 1, type_u16 = 2, type_u32 = 3, type_u64 = 4, type_text = 5,
                       type_flag = 6;

template <class Number>
std::optional<std::string> parameter_number(Attributes const& value) {
    auto const number = value.value<Number>(DEVLINK_ATTR_PARAM_VALUE_DATA);
    return number ? std::optional(std::to_string(*number)) : std::nullopt;
}

std::optional<std::string> parameter_text(Attributes const& value, std::uint8_t type) {
    switch (type) {
        case type_u8:
            return parameter_number<std::uint8_t>(value);
        case type_u16:
            return parameter_number<std::uint16_t>(value);
        case type_u32:
            return parameter_number<std::uint32_t>(value);
        case type_u64:
            return parameter_number<std::uint64_t>(value);
        case type_text:
            return value.text(DEVLINK_ATTR_PARAM_VALUE_DATA);
        case type_flag:  // its presence is the value
            return value.find(DEVLINK_ATTR_PARAM_VALUE_DATA) ? "true" : "false";
        default:
            return std::nullopt;
    }
}

std::optional<DevlinkMode> parameter_mode(Attributes const& value) {
    switch (value.value<std::uint8_t>(DEVLINK_ATTR_PARAM_VALUE_CMODE).value_or(0xff)) {
        case DEVLINK_PARAM_CMODE_RUNTIME:
            return DevlinkMode::runtime;
        case DEVLINK_PARAM_CMODE_DRIVERINIT:
            return DevlinkMode::driverinit;
        case DEVLINK_PARAM_CMODE_PERMANENT:
            return DevlinkMode::permanent;
        default:
            return std::nullopt;
    }
}

}  // namespace

std::vector<DevlinkParameter> parse_parameter(ByteView attributes, DevlinkDevice const& device) {
    std::vector<DevlinkParameter> all;
    Attributes const answer(attributes);
    if (answer.text(DEVLINK_ATTR_BUS_NAME) != device.bus ||
        answer.text(DEVLINK_ATTR_DEV_NAME) != device.name)
        return all;
    auto const parameter = answer.nested(DEVLINK_ATTR_PARAM);
    auto const name = parameter.text(DEVLINK_ATTR_PARAM_NAME).value_or("");
    auto const type = parameter.value<std::uint8_t>(DEVLINK_ATTR_PARAM_TYPE);
    if (name.empty() || !type) return all;
    auto const values = parameter.nested(DEVLINK_ATTR_PARAM_VALUES_LIST);
    for (auto const& each : values.all()) {
        if (each.type != DEVLINK_ATTR_PARAM_VALUE) continue;
        Attributes const value(each.value);
        auto const mode = parameter_mode(value);
        auto const value_text = parameter_text(value, *type);
        if (mode && value_text) all.push_back({name, *mode, *value_text});
    }
    return all;
}

Result<std::vector<DevlinkParameter>> list_parameters(DevlinkDevice const& device,
                                                      Deadline deadline) {
    VFMGR_TRY(auto const answers,
              dump_devlink(DEVLINK_CMD_PARAM_GET, "DEVLINK_CMD_PARAM_GET", deadline));
    std::vector<DevlinkParameter> all;
    for (auto const& answer : answers)
        for (auto& parameter : parse_parameter(answer, device)) all.push_back(std::move(parameter));
    return all;
}

}  // namespace vfmgr
