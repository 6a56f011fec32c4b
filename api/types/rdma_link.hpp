// SPDX-License-Identifier: Apache-2.0
// RDMA in software on a network device: SoftRoCE (rxe) or iWARP (siw); desired and observed.
// Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"
#include "api/types/json_fwd.hpp"

namespace vfmgr {

enum class SoftRdmaType { rxe, siw };
template <>
inline constexpr std::array<EnumName<SoftRdmaType>, 2> enum_names<SoftRdmaType> = {
    {{SoftRdmaType::rxe, "rxe"}, {SoftRdmaType::siw, "siw"}}};

// The body of a PUT, for the link that its path names.
struct RdmaLinkSpec {
    SoftRdmaType type = SoftRdmaType::rxe;
    std::string ifname;
    bool operator==(RdmaLinkSpec const&) const = default;
};
struct SoftRdmaLink {
    std::string name;  // the RDMA device's
    SoftRdmaType type = SoftRdmaType::rxe;
    std::string ifname;
    bool operator==(SoftRdmaLink const&) const = default;
};

// Checks a name that the kernel accepts and that is safe in a path and on a terminal. Returns
// nullopt if it is valid, otherwise what is wrong with it.
[[nodiscard]] std::optional<std::string> wrong_rdma_name(std::string_view name);
[[nodiscard]] std::optional<std::string> wrong_netdev_name(std::string_view name);

// A user of an RDMA device's objects: a process, or a part of the kernel.
struct RdmaUser {
    std::optional<std::int32_t> pid;  // absent: the kernel itself
    std::string comm;                 // "ibv_rc_pingpong", "nvme_rdma"
    std::string holds;                // "queue pair", "CM id", "protection domain", "context"
    bool operator==(RdmaUser const&) const = default;
};

enum class RdmaLinkOwner { vfmgr, other };
template <>
inline constexpr std::array<EnumName<RdmaLinkOwner>, 2> enum_names<RdmaLinkOwner> = {
    {{RdmaLinkOwner::vfmgr, "vfmgr"}, {RdmaLinkOwner::other, "other"}}};

enum class RdmaLinkState {
    present,    // as desired, or not managed by vfmgr
    waiting,    // its netdev is absent; created when the netdev appears
    missing,    // its netdev is present but the link is not (yet); `detail` has the reason
    untrusted,  // absent, and its netdev is no longer among the trusted ones
    conflict,   // another device has its name
};
template <>
inline constexpr std::array<EnumName<RdmaLinkState>, 5> enum_names<RdmaLinkState> = {
    {{RdmaLinkState::present, "present"},
     {RdmaLinkState::waiting, "waiting"},
     {RdmaLinkState::missing, "missing"},
     {RdmaLinkState::untrusted, "untrusted"},
     {RdmaLinkState::conflict, "conflict"}}};

struct ObservedRdmaLink {
    std::optional<SoftRdmaType> type;   // absent: neither rxe nor siw, or not reported
    std::optional<std::string> ifname;  // absent: gone, or in another network namespace
    bool active = false;                // the port's state
    std::vector<RdmaUser> users;
    std::optional<std::string> users_unknown;  // why its users can't be determined; counts as used
    bool operator==(ObservedRdmaLink const&) const = default;
};

// A link of this host, as returned by GET.
struct RdmaLink {
    std::string name;
    RdmaLinkOwner owner = RdmaLinkOwner::other;
    RdmaLinkState state = RdmaLinkState::present;
    std::string detail;                   // one sentence; may be empty
    std::uint64_t revision = 0;           // ETag; 0: not requested from vfmgr
    std::optional<RdmaLinkSpec> desired;  // absent: not managed by vfmgr
    std::optional<ObservedRdmaLink> observed;
    bool operator==(RdmaLink const&) const = default;
};

extern template struct Json<RdmaLinkSpec>;
extern template struct Json<SoftRdmaLink>;
extern template struct Json<RdmaUser>;
extern template struct Json<ObservedRdmaLink>;
extern template struct Json<RdmaLink>;

}  // namespace vfmgr
