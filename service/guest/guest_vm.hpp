// SPDX-License-Identifier: Apache-2.0
// What vfmgrd lets one VM read and do, and what comes back of it: the values between vfmgrd and
// vfmgr-guestd.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/types/guest.hpp"
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

// A running VM that can connect.
struct GuestVm {
    VmIdentity vm;
    std::uint32_t cid = 0;
    GuestAccess access{};
    bool operator==(GuestVm const&) const = default;
};

// All of them, by UUID.
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
