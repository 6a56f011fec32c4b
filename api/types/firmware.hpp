// SPDX-License-Identifier: Apache-2.0
// What a ConnectX card keeps in its firmware and reads at its reset: the settings that matter to
// lent VFs, under mlxconfig's own names. Values; any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/pci_address.hpp"

namespace vfmgr {

// mlxconfig's names and numbers.
enum class PortType { ib = 1, eth = 2, vpi = 3 };
template <>
inline constexpr std::array<EnumName<PortType>, 3> enum_names<PortType> = {
    {{PortType::ib, "IB"}, {PortType::eth, "ETH"}, {PortType::vpi, "VPI"}}};

// Wanted: absent means "leave alone". Reported: absent means that the card shows no such setting.
struct FirmwareSettings {
    std::optional<bool> sriov_en;
    std::optional<std::uint16_t> num_of_vfs;  // of each port
    std::optional<PortType> link_type_p1;
    std::optional<PortType> link_type_p2;
    std::optional<bool> ats_enabled;
    bool operator==(FirmwareSettings const&) const = default;
};

// f(name, member) for each; the names are what the tools and the API call them.
template <class F>
void for_each_firmware_setting(F f) {
    f("SRIOV_EN", &FirmwareSettings::sriov_en);
    f("NUM_OF_VFS", &FirmwareSettings::num_of_vfs);
    f("LINK_TYPE_P1", &FirmwareSettings::link_type_p1);
    f("LINK_TYPE_P2", &FirmwareSettings::link_type_p2);
    f("ATS_ENABLED", &FirmwareSettings::ats_enabled);
}

[[nodiscard]] bool empty(FirmwareSettings const& settings);
// Of `of`, the members that `wanted` names.
[[nodiscard]] FirmwareSettings only_named(FirmwareSettings const& of,
                                          FirmwareSettings const& wanted);
// The wanted members that `is` has not, or has otherwise.
[[nodiscard]] FirmwareSettings differing(FirmwareSettings const& wanted,
                                         FirmwareSettings const& is);
[[nodiscard]] FirmwareSettings overlay(FirmwareSettings base, FirmwareSettings const& over);
// "SRIOV_EN=True", "NUM_OF_VFS=16", "LINK_TYPE_P1=ETH": for people.
[[nodiscard]] std::vector<std::string> assignments(FirmwareSettings const& settings);
// The same with numbers, which every version of the tools takes: "LINK_TYPE_P1=2".
[[nodiscard]] std::vector<std::string> numeric_assignments(FirmwareSettings const& settings);

struct FirmwareTool {
    std::string name;     // mstconfig, mlxconfig
    std::string version;  // as it says itself; empty: it does not
    bool operator==(FirmwareTool const&) const = default;
};

// When a value of devlink's holds: at once, after the driver's next start, after the card's reset.
enum class DevlinkMode { runtime, driverinit, permanent };
template <>
inline constexpr std::array<EnumName<DevlinkMode>, 3> enum_names<DevlinkMode> = {
    {{DevlinkMode::runtime, "runtime"},
     {DevlinkMode::driverinit, "driverinit"},
     {DevlinkMode::permanent, "permanent"}}};

// A parameter that the kernel's driver offers through devlink; as it is, vfmgr sets none.
struct DevlinkParameter {
    std::string name;  // "enable_roce", "total_vfs"
    DevlinkMode mode = DevlinkMode::runtime;
    std::string value;  // "true", "16", "dmfs"
    bool operator==(DevlinkParameter const&) const = default;
};

// One device for mlxconfig, however many ports it has.
struct FirmwareCard {
    PciAddress pci;                     // its first function
    std::vector<PciAddress> functions;  // its ports, ascending
    std::string device_type;            // "ConnectX6DX"; empty: not known
    std::optional<FirmwareTool> tool;   // absent: none is installed
    std::optional<FirmwareSettings> by_default;
    std::optional<FirmwareSettings> current;  // absent: this tool or card does not show it
    std::optional<FirmwareSettings> next;     // after its reset; absent: see problem
    // NUM_OF_VFS means nothing then: each port has a count of its own (PF_NUM_OF_VF_VALID).
    bool counts_per_port = false;
    std::vector<DevlinkParameter> devlink;
    std::string boot_id;           // of the kernel that looked
    std::optional<Error> problem;  // why the settings could not be read
    bool operator==(FirmwareCard const&) const = default;
};

// What it takes that `next` becomes `current`. A reboot that did not do it, but for a card that
// keeps its power: the host has to be switched off.
enum class FirmwarePending { none, reboot, power_cycle };
template <>
inline constexpr std::array<EnumName<FirmwarePending>, 3> enum_names<FirmwarePending> = {
    {{FirmwarePending::none, "none"},
     {FirmwarePending::reboot, "reboot"},
     {FirmwarePending::power_cycle, "power_cycle"}}};

// The body of a change.
struct FirmwareRequest {
    FirmwareSettings settings;
    bool operator==(FirmwareRequest const&) const = default;
};

class JsonReader;
void to_json(nlohmann::json& out, FirmwareSettings const& settings);
void read(JsonReader& reader, FirmwareSettings& settings);
void to_json(nlohmann::json& out, FirmwareTool const& tool);
void read(JsonReader& reader, FirmwareTool& tool);
void to_json(nlohmann::json& out, DevlinkParameter const& parameter);
void read(JsonReader& reader, DevlinkParameter& parameter);
void to_json(nlohmann::json& out, FirmwareCard const& card);
void read(JsonReader& reader, FirmwareCard& card);
void to_json(nlohmann::json& out, FirmwareRequest const& request);
void read(JsonReader& reader, FirmwareRequest& request);

}  // namespace vfmgr
