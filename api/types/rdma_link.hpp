// SPDX-License-Identifier: Apache-2.0
// RDMA in software on a network device: SoftRoCE (rxe) or iWARP (siw). What is wanted of it, and
// what there is. Values; any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/types/enum_names.hpp"

namespace vfmgr {

enum class SoftRdmaType { rxe, siw };
template <>
inline constexpr std::array<EnumName<SoftRdmaType>, 2> enum_names<SoftRdmaType> = {
    {{SoftRdmaType::rxe, "rxe"}, {SoftRdmaType::siw, "siw"}}};

// What a PUT says of the link that its path names.
struct RdmaLinkSpec {
    SoftRdmaType type = SoftRdmaType::rxe;
    std::string netdev;
    bool operator==(RdmaLinkSpec const&) const = default;
};
struct SoftRdmaLink {
    std::string name;  // of the RDMA device
    SoftRdmaType type = SoftRdmaType::rxe;
    std::string netdev;
    bool operator==(SoftRdmaLink const&) const = default;
};

// As the kernel takes them, and as they are safe in a path and on a terminal. Nothing: it will do;
// otherwise what is wrong with it.
[[nodiscard]] std::optional<std::string> wrong_rdma_name(std::string_view name);
[[nodiscard]] std::optional<std::string> wrong_netdev_name(std::string_view name);

// Somebody who has something of an RDMA device: a process, or a part of the kernel.
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
    present,    // as it is wanted, or somebody else's
    waiting,    // its netdev is not there: made when it comes
    missing,    // its netdev is there, and it is not (yet); `detail` says why
    untrusted,  // not there, and its netdev is not among the trusted ones any more
    conflict,   // something else has its name
};
template <>
inline constexpr std::array<EnumName<RdmaLinkState>, 5> enum_names<RdmaLinkState> = {
    {{RdmaLinkState::present, "present"},
     {RdmaLinkState::waiting, "waiting"},
     {RdmaLinkState::missing, "missing"},
     {RdmaLinkState::untrusted, "untrusted"},
     {RdmaLinkState::conflict, "conflict"}}};

struct ObservedRdmaLink {
    std::optional<SoftRdmaType> type;   // absent: neither rxe nor siw, or the kernel does not say
    std::optional<std::string> netdev;  // absent: it is gone, or in another network namespace
    bool active = false;                // the port's state
    std::vector<RdmaUser> users;
    std::optional<std::string> users_unknown;  // why nobody can say who uses it: counts as used
    bool operator==(ObservedRdmaLink const&) const = default;
};

// A link of this host, as GET shows it.
struct RdmaLink {
    std::string name;
    RdmaLinkOwner owner = RdmaLinkOwner::other;
    RdmaLinkState state = RdmaLinkState::present;
    std::string detail;                  // a sentence; empty where there is nothing to say
    std::uint64_t revision = 0;          // ETag; 0: not wanted of vfmgr
    std::optional<RdmaLinkSpec> wanted;  // absent: somebody else's
    std::optional<ObservedRdmaLink> observed;
    bool operator==(RdmaLink const&) const = default;
};

class JsonReader;
void to_json(nlohmann::json& out, RdmaLinkSpec const& spec);
void read(JsonReader& reader, RdmaLinkSpec& spec);
void to_json(nlohmann::json& out, SoftRdmaLink const& link);
void read(JsonReader& reader, SoftRdmaLink& link);
void to_json(nlohmann::json& out, RdmaUser const& user);
void read(JsonReader& reader, RdmaUser& user);
void to_json(nlohmann::json& out, ObservedRdmaLink const& observed);
void read(JsonReader& reader, ObservedRdmaLink& observed);
void to_json(nlohmann::json& out, RdmaLink const& link);
void read(JsonReader& reader, RdmaLink& link);

}  // namespace vfmgr
