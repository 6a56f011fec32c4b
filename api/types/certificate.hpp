// SPDX-License-Identifier: Apache-2.0
// What the host saw of a VF when its last lease had ended: function level reset done, every setting
// that was lent at its baseline again, nothing of the tenant's addresses left, held open by nobody.
// A VF without one is in quarantine. Whole in itself: what it names may be gone. A value.
#pragma once

#include <optional>
#include <string>

#include "api/types/enum_names.hpp"
#include "api/types/time.hpp"
#include "api/types/vf_state.hpp"

namespace vfmgr {

// The beginning or the end of the lease. Absent: not noted, by an earlier vfmgrd.
struct LeaseMark {
    std::optional<Time> at;                   // when it began to be done
    std::optional<std::string> operation;     // that did it
    std::optional<std::string> requested_by;  // uid:0, token:<id>, daemon
    bool operator==(LeaseMark const&) const = default;
};

// As the kernel's reset_method names them. No other is good enough.
enum class ResetMethod { flr };
template <>
inline constexpr std::array<EnumName<ResetMethod>, 1> enum_names<ResetMethod> = {
    {{ResetMethod::flr, "flr"}}};

struct VfReset {
    ResetMethod method = ResetMethod::flr;
    Time done_at{};
    bool operator==(VfReset const&) const = default;
};

// Of the settings that were lent, what the driver reported.
struct PutBack {
    VfSpec was;  // when the release began
    VfSpec is;   // when the VF was looked at
    bool operator==(PutBack const&) const = default;
};

// An address that the tenant had and the VF has no more.
template <class Address>
struct Rotated {
    Address was{};
    std::optional<Address> is;  // absent: the driver does not tell
    bool operator==(Rotated const&) const = default;
};

// Absent: the lease gave none, or the one that the VF had before.
struct RotatedAddresses {
    std::optional<Rotated<MacAddress>> mac;
    std::optional<Rotated<Guid>> node_guid;
    std::optional<Rotated<Guid>> port_guid;
    bool operator==(RotatedAddresses const&) const = default;
};

struct Certificate {
    VfId vf;
    PciAddress vf_pci;
    std::string attachment;  // the lease that ended
    std::string vm_name;
    VfSpec settings;                    // as the driver reports them
    std::optional<std::string> driver;  // that the VF waits with
    Time seen_at{};
    LeaseMark lent{};
    LeaseMark released{};
    std::optional<VfReset> reset{};  // absent: not noted, by an earlier vfmgrd
    PutBack put_back{};
    RotatedAddresses rotated{};
    // Right before the reset, which may clear them; absent: the PF's driver does not tell.
    std::optional<VfCounters> counters{};
    bool operator==(Certificate const&) const = default;
};

void to_json(nlohmann::json& out, Certificate const& certificate);
void read(JsonReader& reader, Certificate& certificate);

}  // namespace vfmgr
