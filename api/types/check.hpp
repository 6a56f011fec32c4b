// SPDX-License-Identifier: Apache-2.0
// What the checks of a host or a VM found: GET /v1/host/checks, vfctl doctor, vf-guest doctor.
// Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

enum class CheckResult {
    failed,          // it can't work like this
    warning,         // it works, and will hurt
    unknown,         // not to be seen from here: see `detail`
    ok,              //
    not_applicable,  // this machine has nothing of the kind
};
template <>
inline constexpr std::array<EnumName<CheckResult>, 5> enum_names<CheckResult> = {
    {{CheckResult::failed, "failed"},
     {CheckResult::warning, "warning"},
     {CheckResult::unknown, "unknown"},
     {CheckResult::ok, "ok"},
     {CheckResult::not_applicable, "not_applicable"}}};

// What a cure does to others besides curing.
enum class BlastRadius {
    none,    // nothing that runs notices
    netdev,  // traffic of one network interface stops for a while
    host,    // every VF and RDMA device of a driver, so every VM that was lent a VF
    reboot,  // everything
};
template <>
inline constexpr std::array<EnumName<BlastRadius>, 4> enum_names<BlastRadius> = {
    {{BlastRadius::none, "none"},
     {BlastRadius::netdev, "netdev"},
     {BlastRadius::host, "host"},
     {BlastRadius::reboot, "reboot"}}};

struct Cure {
    // In this order, as a root shell takes them. Empty while VMs are to be drained first, and where
    // no command does it (firmware set-up, a cable).
    std::vector<std::string> commands;
    BlastRadius blast_radius = BlastRadius::none;
    std::string note;                // what no command says: "enable VT-d in the firmware's set-up"
    std::vector<std::string> drain;  // VMs that hold VFs; the commands are told when there are none
    bool operator==(Cure const&) const = default;
};

// Where it was seen: a path, a command or a netlink request; and what stood there.
struct Evidence {
    std::string source;
    std::string text;
    bool operator==(Evidence const&) const = default;
};

struct Finding {
    std::string rule;     // "iommu.enabled"
    std::string subject;  // "0000:3b:00.0", "ens1", "mlx5_0/1"; empty: the machine
    CheckResult result = CheckResult::unknown;
    std::string detail;  // one sentence
    std::vector<Evidence> evidence;
    std::optional<Cure> cure;  // of failed and warning
    bool operator==(Finding const&) const = default;
};

enum class CheckedMachine { host, guest };
template <>
inline constexpr std::array<EnumName<CheckedMachine>, 2> enum_names<CheckedMachine> = {
    {{CheckedMachine::host, "host"}, {CheckedMachine::guest, "guest"}}};

struct CheckReport {
    CheckedMachine machine = CheckedMachine::host;
    Time collected_at{};
    std::string kernel;             // its release; empty when it is not known
    std::vector<Finding> findings;  // in the rules' order
    bool operator==(CheckReport const&) const = default;
};

// The worst of all: `failed` before `warning` before the rest.
[[nodiscard]] CheckResult worst(CheckReport const& report);

class JsonReader;
void to_json(nlohmann::json& out, Cure const& cure);
void read(JsonReader& reader, Cure& cure);
void to_json(nlohmann::json& out, Evidence const& evidence);
void read(JsonReader& reader, Evidence& evidence);
void to_json(nlohmann::json& out, Finding const& finding);
void read(JsonReader& reader, Finding& finding);
void to_json(nlohmann::json& out, CheckReport const& report);
void read(JsonReader& reader, CheckReport& report);

}  // namespace vfmgr
