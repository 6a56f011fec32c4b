// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/devlink_parameters.hpp"

#include <linux/devlink.h>

namespace vfmgr {
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
