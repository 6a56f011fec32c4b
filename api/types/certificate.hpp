// SPDX-License-Identifier: Apache-2.0
// What the host observed of a VF after its last attachment ended: function level reset done, every
// attached setting at its baseline again, none of the tenant's addresses left, no process holding
// it open. A VF without a certificate is in quarantine. Self-contained: the objects it names may be
// gone. A value.
#pragma once

#include <optional>
#include <string>

#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/time.hpp"
#include "api/types/vf_state.hpp"

namespace vfmgr {

// The start or the end of the attachment. Absent: not recorded, by an earlier vfmgrd.
struct CertificateMark {
    std::optional<Time> at;                   // when the work on it began
    std::optional<std::string> operation;     // that did it
    std::optional<std::string> requested_by;  // uid:0, token:<id>, daemon
    bool operator==(CertificateMark const&) const = default;
};

// Named as in the kernel's reset_method. No other method is good enough.
enum class ResetMethod { flr };
template <>
inline constexpr std::array<EnumName<ResetMethod>, 1> enum_names<ResetMethod> = {
    {{ResetMethod::flr, "flr"}}};

struct VfReset {
    ResetMethod method = ResetMethod::flr;
    Time done_at{};
    bool operator==(VfReset const&) const = default;
};

// The attached settings, as the driver reported them.
struct Restored {
    VfSpec was;  // when the detach began
    VfSpec is;   // when the VF was observed
    bool operator==(Restored const&) const = default;
};

// An address that the tenant had and the VF no longer has.
template <class Address>
struct Rotated {
    Address was{};
    std::optional<Address> is;  // absent: the driver does not report it
    bool operator==(Rotated const&) const = default;
};

// Absent: the attachment set none, or set the address that the VF had before.
struct RotatedAddresses {
    std::optional<Rotated<MacAddress>> mac;
    std::optional<Rotated<Guid>> node_guid;
    std::optional<Rotated<Guid>> port_guid;
    bool operator==(RotatedAddresses const&) const = default;
};

struct Certificate {
    VfId vf;
    PciAddress vf_pci;
    std::string attachment;  // the attachment that ended
    std::string vm;
    VfSpec settings;                    // as the driver reports them
    std::optional<std::string> driver;  // that the free VF is bound to
    Time observed_at{};
    CertificateMark attached{};
    CertificateMark detached{};
    std::optional<VfReset> reset{};  // absent: not recorded, by an earlier vfmgrd
    Restored restored{};
    RotatedAddresses rotated{};
    // Read right before the reset, which may clear them; absent: not reported by the PF's driver.
    std::optional<VfCounters> counters{};
    bool operator==(Certificate const&) const = default;
};

extern template struct Json<Certificate>;

}  // namespace vfmgr
