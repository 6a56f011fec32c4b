// SPDX-License-Identifier: Apache-2.0
// What vfmgrd lets one VM read and do, and what comes back of it: the values between vfmgrd and
// vfmgr-guestd.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/enrolment.hpp"
#include "api/types/guest.hpp"
#include "api/types/guest_keys.hpp"
#include "api/types/vm_info.hpp"
#include "vfmgr/proof/permit.hpp"

namespace vfmgr {

struct GuestAccess {
    std::vector<GuestAttachment> attachments;          // `run` and `nonce` if one is requested
    std::vector<verify::SessionPermit> permits;        // for the attachments with a run
    std::map<std::string, ResponderTarget> remotes{};  // by run: those that another host answers
    // Without a run: for the interop clients of these attachments, if an operator opens them.
    std::vector<verify::SessionPermit> interop{};
    bool operator==(GuestAccess const&) const = default;
};

// Who connects, and whose share a request uses: a VM's CID, or above all CIDs a guest on TCP.
using GuestNumber = std::uint64_t;
inline constexpr GuestNumber cid_max = UINT32_MAX;

// A guest on TCP, which is one attachment's.
struct TcpGuest {
    std::string interface;  // the host's, into the VF's network
    IpAddress host;         // on it: where the guest connects
    IpAddress address;      // the VF's, where it comes from
    std::vector<GuestSecret> keys{};
    bool operator==(TcpGuest const&) const = default;
};

// A running VM that can connect; or a guest on TCP, whose `vm.uuid` is its guest_key().
struct GuestVm {
    VmIdentity vm;
    std::uint32_t cid = 0;
    std::optional<TcpGuest> tcp{};  // absent: by `cid`
    GuestAccess access{};
    bool operator==(GuestVm const&) const = default;
};

// All of them, by `vm.uuid`.
struct GuestVms {
    std::map<std::string, GuestVm> vms{};
    // False: libvirt has announced a change since, so a CID may be another VM's by now.
    bool current = false;
    bool operator==(GuestVms const&) const = default;
};

// A verification requested by the guest (`vf-guest verify`).
struct RunTicket {
    std::string attachment;
    std::string run;
    std::string nonce;
    Profile profile = Profile::default_;
    bool operator==(RunTicket const&) const = default;
};

// What the guest plane has to do now; `refused` counts from its start.
struct GuestPlaneLoad {
    std::size_t requests_waiting = 0;
    std::size_t long_polls = 0;
    std::uint64_t refused = 0;
    bool operator==(GuestPlaneLoad const&) const = default;
};

}  // namespace vfmgr
