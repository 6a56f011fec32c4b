// SPDX-License-Identifier: Apache-2.0
// What is wanted, and who has what: the store's content as a value. The control thread owns the one
// that counts; everybody else reads copies.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/pf_info.hpp"

namespace vfmgr {

// The PF's link before vfmgr first used it, to be put back when nobody uses it any more.
struct PfBase {
    bool up = false;
    std::uint32_t mtu = 1500;
    bool rdma = false;                 // it had an RDMA device of its own or of somebody else's
    std::vector<IpAddress> addresses;  // on it and on VLAN devices that vfmgr did not make
    bool operator==(PfBase const&) const = default;
};

struct DesiredPf {
    PfSpec spec;
    std::uint64_t revision = 1;  // ETag
    std::optional<PfBase> base;
    bool operator==(DesiredPf const&) const = default;
};

// A VF that could not be shown to be clean. Never lent; an admin lifts it, which does the release
// of the lease once more.
struct Quarantine {
    VfId vf;
    Attachment attachment;  // the lease that ended here
    std::string reason;
    std::vector<std::string> residue;
    Time since{};
    bool operator==(Quarantine const&) const = default;
};

struct DesiredState {
    std::map<PciAddress, DesiredPf> pfs;
    std::map<std::string, Attachment> attachments;
    std::map<VfId, Quarantine> quarantine;
    bool operator==(DesiredState const&) const = default;
};

void to_json(nlohmann::json& out, PfBase const& base);
void read(JsonReader& reader, PfBase& base);
void to_json(nlohmann::json& out, DesiredPf const& pf);
void read(JsonReader& reader, DesiredPf& pf);
void to_json(nlohmann::json& out, Quarantine const& quarantine);
void read(JsonReader& reader, Quarantine& quarantine);

}  // namespace vfmgr
