// SPDX-License-Identifier: Apache-2.0
// A ConnectX's firmware configuration, as mstconfig and mlxconfig print it: one, two or three
// columns of values, which the header names. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/addresses.hpp"

namespace vfmgr::checks {

struct FirmwareValue {
    std::string text;                     // "True", "8", "Array[0..7]"
    std::optional<std::uint64_t> number;  // of "True(1)" and "8"
    // Compares by number if both have one: the tools name the same number differently.
    [[nodiscard]] bool same_as(FirmwareValue const& other) const;
    bool operator==(FirmwareValue const&) const = default;
};
[[nodiscard]] std::string to_string(FirmwareValue const& value);  // "True(1)", "8"

struct FirmwareParameter {
    std::string name;  // "SRIOV_EN", "PCI_DOWNSTREAM_PORT_OWNER[4]"
    // Absent if this tool, or this card, has no such column.
    std::optional<FirmwareValue> by_default, current, next;
    // Takes effect at the card's next reset. Not the same as the "*" in front, which also marks
    // values that only differ from the default.
    [[nodiscard]] bool pending() const;
    bool operator==(FirmwareParameter const&) const = default;
};

struct FirmwareConfiguration {
    std::string device_type;  // "ConnectX6DX"
    std::string device;       // "0000:3b:00.0", "/dev/mst/mt4125_pciconf0"
    bool shows_current = false;
    std::vector<FirmwareParameter> parameters;
    std::vector<std::string> not_understood;  // rows that begin as a parameter does
    [[nodiscard]] FirmwareParameter const* find(std::string_view name) const;
    bool operator==(FirmwareConfiguration const&) const = default;
};

// Parses the first device of an output. Rows that don't fit the header are not understood.
[[nodiscard]] FirmwareConfiguration parse_firmware_configuration(std::string_view output);

// "mstconfig -e -d 0000:3b:00.0 q".
[[nodiscard]] std::string firmware_query(std::string_view tool, PciAddress const& function);

}  // namespace vfmgr::checks
