// SPDX-License-Identifier: Apache-2.0
// An event in the life of a PF or one of its VFs. Events are kept in the order of observation,
// longer than the attachment and the VF they describe. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/types/certificate.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/pci_address.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

// drift: the host differs from the desired state, and no vfmgr operation caused that. settled: it
// matches the desired state again. lost: drift that left a running VM without its VF. repaired,
// repair_failed: what mode enforce did about it. The others are ends of operations, and verdicts.
enum class EventKind {
    pf_configured,
    attached,
    attach_failed,
    verified,
    detached,
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
     {EventKind::attached, "attached"},
     {EventKind::attach_failed, "attach_failed"},
     {EventKind::verified, "verified"},
     {EventKind::detached, "detached"},
     {EventKind::quarantined, "quarantined"},
     {EventKind::drift, "drift"},
     {EventKind::settled, "settled"},
     {EventKind::repaired, "repaired"},
     {EventKind::repair_failed, "repair_failed"},
     {EventKind::lost, "lost"}}};

struct HistoryEvent {
    std::uint64_t number = 0;  // rises with time on this host; assigned by the store
    Time at{};
    EventKind kind = EventKind::drift;
    PciAddress pf;
    std::optional<std::uint16_t> vf;  // absent: the PF, and with it all of its VFs
    std::optional<std::string> attachment;
    std::optional<std::string> vm;
    std::optional<std::string> operation;     // that caused it; has the details
    std::optional<std::uint64_t> because_of;  // number of the event that caused it
    std::string detail;                       // one sentence
    std::optional<Certificate> certificate;   // of the detached VF
    bool operator==(HistoryEvent const&) const = default;
};

extern template struct Json<HistoryEvent>;

}  // namespace vfmgr
