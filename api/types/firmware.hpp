// SPDX-License-Identifier: Apache-2.0
// The settings that a ConnectX card keeps in its firmware and reads at its reset: those that matter
// to attached VFs, under mlxconfig's own names. Values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"

namespace vfmgr {

// mlxconfig's names and numbers.
enum class PortType { ib = 1, eth = 2, vpi = 3 };
template <>
inline constexpr std::array<EnumName<PortType>, 3> enum_names<PortType> = {
    {{PortType::ib, "IB"}, {PortType::eth, "ETH"}, {PortType::vpi, "VPI"}}};

// Desired: absent means "leave alone". Reported: absent means that the card has no such setting.
struct FirmwareSettings {
    std::optional<bool> sriov_en;
    std::optional<std::uint16_t> num_of_vfs;  // per port
    std::optional<PortType> link_type_p1;
    std::optional<PortType> link_type_p2;
    std::optional<bool> ats_enabled;
    bool operator==(FirmwareSettings const&) const = default;
};

// Calls f(name, member) for each setting, with the tools' and the API's name for it.
template <class F>
void for_each_firmware_setting(F f) {
    f("SRIOV_EN", &FirmwareSettings::sriov_en);
    f("NUM_OF_VFS", &FirmwareSettings::num_of_vfs);
    f("LINK_TYPE_P1", &FirmwareSettings::link_type_p1);
    f("LINK_TYPE_P2", &FirmwareSettings::link_type_p2);
    f("ATS_ENABLED", &FirmwareSettings::ats_enabled);
}

[[nodiscard]] bool empty(FirmwareSettings const& settings);
// Returns the members of `of` that `desired` names.
[[nodiscard]] FirmwareSettings only_named(FirmwareSettings const& of,
                                          FirmwareSettings const& desired);
// Returns the desired members that `is` lacks or has with another value.
[[nodiscard]] FirmwareSettings differing(FirmwareSettings const& desired,
                                         FirmwareSettings const& is);
[[nodiscard]] FirmwareSettings overlay(FirmwareSettings base, FirmwareSettings const& over);
// Returns "SRIOV_EN=True", "NUM_OF_VFS=16", "LINK_TYPE_P1=ETH": for display.
[[nodiscard]] std::vector<std::string> assignments(FirmwareSettings const& settings);
// The same with numbers, which every version of the tools accepts: "LINK_TYPE_P1=2".
[[nodiscard]] std::vector<std::string> numeric_assignments(FirmwareSettings const& settings);

struct FirmwareTool {
    std::string name;     // mstconfig, mlxconfig
    std::string version;  // as the tool reports it; empty: it does not
    bool operator==(FirmwareTool const&) const = default;
};

// When a devlink value takes effect: at once, at the driver's next start, at the card's reset.
enum class DevlinkMode { runtime, driverinit, permanent };

// A parameter that the kernel driver offers through devlink. Reported only; vfmgr sets none.
struct DevlinkParameter {
    std::string name;  // "enable_roce", "total_vfs"
    DevlinkMode mode = DevlinkMode::runtime;
    std::string value;  // "true", "16", "dmfs"
    bool operator==(DevlinkParameter const&) const = default;
};

// One mlxconfig device, however many ports it has.
struct FirmwareCard {
    PciAddress pci;                     // its first function
    std::vector<PciAddress> functions;  // its ports, ascending
    std::string device_type;            // "ConnectX6DX"; empty: unknown
    std::optional<FirmwareTool> tool;   // absent: none is installed
    std::optional<FirmwareSettings> by_default;
    std::optional<FirmwareSettings> current;  // absent: this tool or card does not report it
    std::optional<FirmwareSettings> next;     // after the reset; absent: see problem
    // NUM_OF_VFS is meaningless then: each port has its own count (PF_NUM_OF_VF_VALID).
    bool counts_per_port = false;
    std::vector<DevlinkParameter> devlink;
    std::string boot_id;           // of the kernel that read it
    std::optional<Error> problem;  // why the settings could not be read
    bool operator==(FirmwareCard const&) const = default;
};

// What makes `next` become `current`. power_cycle: vfmgr requested a pending value in an earlier
// boot and the reboot since did not apply it, as when the card kept its power: power-cycle the
// host.
enum class FirmwarePending { none, reboot, power_cycle };

// Firmware settings that were requested of a card and have not been observed in effect since.
// Records the boots in which each setting was requested: a client that requests it at every boot
// and reboots until it takes effect must be stopped at some point.
struct FirmwareTries {
    FirmwareSettings settings;
    std::map<std::string, std::vector<std::string>> boots;  // by the setting's name; boot ids
    bool operator==(FirmwareTries const&) const = default;
};

// A card with what the daemon knows of it: the answer of a GET.
struct FirmwareView {
    FirmwareCard card;
    std::optional<FirmwarePending> pending;  // absent: unknown
    std::vector<std::string> in_use;         // uses of the card's VFs, one sentence each
    std::optional<FirmwareTries> tries;
};

// The body of a change request.
struct FirmwareRequest {
    FirmwareSettings settings;
};

extern template struct Json<FirmwareSettings>;
extern template struct Json<FirmwareCard>;
extern template struct Json<FirmwareTries>;
extern template struct Json<FirmwareView>;
extern template struct Json<FirmwareRequest>;

}  // namespace vfmgr
