// SPDX-License-Identifier: Apache-2.0
// Something that happened to a PF, or to one of its VFs. Kept in the order in which it was seen,
// longer than the lease and the VF that it tells of. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/types/certificate.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/pci_address.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// drift: the host is not as it is wanted, and no operation of vfmgr's made it so. settled: it is
// as it is wanted again. lost: a drift by which a VM that runs has no VF any more. repaired,
// repair_failed: what mode enforce did about it. The others are ends of operations, and verdicts.
enum class EventKind {
    pf_configured,
    lent,
    lending_failed,
    verified,
    returned,
    quarantined,
    drift,
    settled,
    repaired,
    repair_failed,
    lost
};
template <>
inline constexpr std::array<EnumName<EventKind>, 11> enum_names<EventKind> = {
    {{EventKind::pf_configured, "pf_configured"},
     {EventKind::lent, "lent"},
     {EventKind::lending_failed, "lending_failed"},
     {EventKind::verified, "verified"},
     {EventKind::returned, "returned"},
     {EventKind::quarantined, "quarantined"},
     {EventKind::drift, "drift"},
     {EventKind::settled, "settled"},
     {EventKind::repaired, "repaired"},
     {EventKind::repair_failed, "repair_failed"},
     {EventKind::lost, "lost"}}};

struct HistoryEvent {
    std::uint64_t number = 0;  // rises with time on this host; the store gives it
    Time at{};
    EventKind kind = EventKind::drift;
    PciAddress pf;
    std::optional<std::uint16_t> vf;  // absent: the PF, and with it all of its VFs
    std::optional<std::string> attachment;
    std::optional<std::string> vm_name;
    std::optional<std::string> operation;     // that did it, and says more
    std::optional<std::uint64_t> because_of;  // number of the event that led to it
    std::string detail;                       // a sentence
    std::optional<Certificate> certificate;   // of the VF that was returned
    bool operator==(HistoryEvent const&) const = default;
};

void to_json(nlohmann::json& out, HistoryEvent const& event);
void read(JsonReader& reader, HistoryEvent& event);

}  // namespace vfmgr
