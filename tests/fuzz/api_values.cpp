// SPDX-License-Identifier: Apache-2.0
// Any bytes as a value of the API. The first byte selects the type: a body that a client sends, a
// fact that vfctl reads, or a short text. An accepted value is written, read again and equal; a
// refusal gives its reason.
#include <array>
#include <cstdint>
#include <string_view>

#include "api/types/attachment_patch.hpp"
#include "api/types/desired.hpp"
#include "api/types/event.hpp"
#include "api/types/firmware.hpp"
#include "api/types/fleet.hpp"
#include "api/types/fleet_reservation.hpp"
#include "api/types/host_tree.hpp"
#include "api/types/identities.hpp"
#include "api/types/json.hpp"
#include "api/types/network.hpp"
#include "api/types/operation.hpp"
#include "api/types/pf.hpp"
#include "api/types/pool.hpp"
#include "api/types/rdma.hpp"
#include "api/types/reservation.hpp"
#include "api/types/tenant.hpp"
#include "api/types/topology.hpp"
#include "api/types/vm_info.hpp"
#include "api/types/vm_topology.hpp"
#include "tests/fuzz/require.hpp"

namespace {

using namespace vfmgr;

void require_reason(Error const& error) {
    require(error.problem == Problem::invalid_request);
    require(!error.detail.empty() && !error.remedy.empty());
    for (auto const& violation : error.violations) {
        require(!violation.detail.empty());
        require(violation.pointer.empty() || violation.pointer.front() == '/');
    }
}

template <class T>
void as_document(std::string_view text) {
    auto const value = from_json_text<T>(text);
    if (!value) return require_reason(value.error());
    auto const written = to_json_text(JsonWriter::encode(*value));
    auto const again = from_json_text<T>(written);
    require(again.has_value());
    // A time is written with milliseconds: one that came with more digits is equal from then on.
    require(to_json_text(JsonWriter::encode(*again)) == written);
    if constexpr (std::is_same_v<T, PfSpec> || std::is_same_v<T, Network> ||
                  std::is_same_v<T, AttachmentSpec> || std::is_same_v<T, AttachmentPatch>)
        require(*again == *value);
    // Its ifname becomes part of paths and messages.
    if constexpr (std::is_same_v<T, RdmaLinkSpec>)
        require(value->ifname.size() <= 15 && value->ifname.find('/') == std::string::npos);
}

template <class T>
void as_text(std::string_view text) {
    auto const value = T::parse(text);
    if (!value) return require_reason(value.error());
    auto const again = T::parse(to_string(*value));
    require(again.has_value() && *again == *value);
}

void as_pkey(std::string_view text) {
    auto const value = parse_pkey(text);
    if (!value) return require_reason(value.error());
    auto const again = parse_pkey(to_string(*value));
    require(again.has_value() && *again == *value);
}

void as_time(std::string_view text) {
    auto const value = parse_rfc3339(text);
    if (!value) return;
    auto const again = parse_rfc3339(to_rfc3339(*value));
    require(again == std::chrono::floor<std::chrono::milliseconds>(*value));
}

// Every address of an accepted prefix lies in it.
void as_prefix(std::string_view text) {
    as_text<IpPrefix>(text);
    auto const prefix = IpPrefix::parse(text);
    if (!prefix) return;
    require(prefix->contains(prefix->address) && prefix->overlaps(*prefix));
    require(prefix->contains(prefix->last()));
    if (auto const next = prefix->last().next()) require(!prefix->contains(*next));
    if (auto const broadcast = prefix->broadcast()) require(prefix->contains(*broadcast));
}

constexpr std::array<void (*)(std::string_view), 39> parsers{as_document<PfSpec>,
                                                             as_document<AttachmentSpec>,
                                                             as_document<VfSpec>,
                                                             as_document<Operation>,
                                                             as_document<Attachment>,
                                                             as_document<PfInfo>,
                                                             as_document<VmInfo>,
                                                             as_text<PciAddress>,
                                                             as_text<MacAddress>,
                                                             as_text<Guid>,
                                                             as_text<IpAddress>,
                                                             as_prefix,
                                                             as_time,
                                                             as_document<FirmwareRequest>,
                                                             as_document<FirmwareCard>,
                                                             as_document<RdmaLinkSpec>,
                                                             as_document<RdmaLink>,
                                                             as_document<Event>,
                                                             as_document<Certificate>,
                                                             as_document<GpuTestReport>,
                                                             as_document<HostTopology>,
                                                             as_document<Network>,
                                                             as_text<Range<IpAddress>>,
                                                             as_text<Range<MacAddress>>,
                                                             as_document<Pool>,
                                                             as_document<ReservationSpec>,
                                                             as_document<Identities>,
                                                             as_text<PfVfs>,
                                                             as_text<PciIds>,
                                                             as_text<Range<Guid>>,
                                                             as_document<DesiredDocument>,
                                                             as_document<Tenant>,
                                                             as_document<AttachmentPatch>,
                                                             as_document<HostTree>,
                                                             as_document<VmTopology>,
                                                             as_pkey,
                                                             as_document<FleetReservationSpec>,
                                                             as_document<IdentitiesView>,
                                                             as_document<FleetMembership>};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    if (size == 0) return 0;
    // 'a' is the first type, to keep the seeds readable.
    auto const chosen = static_cast<std::uint8_t>(data[0] - 'a') % parsers.size();
    parsers.at(chosen)({reinterpret_cast<char const*>(data) + 1, size - 1});
    return 0;
}
