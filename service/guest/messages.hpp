// SPDX-License-Identifier: Apache-2.0
// Messages between vfmgrd and vfmgr-guestd: one JSON object per line. vfmgr-guestd speaks first,
// with its greeting. Then either end asks the other, and each request is answered by its id; vfmgrd
// also pushes what VMs may do, and vfmgr-guestd which VM waits for work. Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/types/rdma.hpp"
#include "api/types/topology.hpp"
#include "service/guest/guest_vm.hpp"

namespace vfmgr::guestd {

// Both ends have the same, or do not work together: they are of one package, but one of them may
// still run when the other has been upgraded.
inline constexpr std::uint32_t protocol = 2;

struct Greeting {
    std::uint32_t protocol = guestd::protocol;
    std::string version;   // of the package
    std::string instance;  // of the process, random: another one has none of its sessions
    std::optional<std::string> fingerprint{};  // of its certificate; absent: it has no TCP
    bool operator==(Greeting const&) const = default;
};

enum class Call {
    // vfmgr-guestd asks for these.
    identify,   // the VM with `cid`
    confirm,    // that `vm` still has `cid`
    topology,   // of the devices that `vm` has
    start_run,  // `ticket` of `vm`
    enrol,      // a key for `vm`, a guest on TCP, that shows `secret`
    verdict,    // takes `verification`, and returns it with what vfmgrd knows
    // vfmgrd asks for these.
    load,
    open_interop,  // as `interop` says, for `permit`
    find_interop,  // of `attachment`
    close_interop,
};

struct Request {
    std::uint64_t id = 0;  // repeated in the answer; not 0
    Call call = Call::load;
    std::optional<std::uint32_t> cid{};
    std::optional<VmIdentity> vm{};
    std::optional<RunTicket> ticket{};
    std::optional<std::string> secret{};
    std::optional<Verification> verification{};
    std::optional<verify::SessionPermit> permit{};
    std::optional<InteropRequest> interop{};
    std::optional<std::string> attachment{};
};

struct Load {
    GuestPlaneLoad plane;
    verify::ResponderLoad responder;
    bool operator==(Load const&) const = default;
};

// Has an error, or what its call returns.
struct Answer {
    std::uint64_t id = 0;
    std::optional<Error> error{};
    std::optional<VmIdentity> vm{};
    std::optional<HostTopology> topology{};
    std::optional<GuestKey> key{};
    std::optional<Verification> verification{};
    std::optional<Load> load{};
    std::optional<InteropWindow> window{};  // of find_interop: absent if none is open
};

// What has changed for VMs since the last one; the first of a connection has all of them.
struct Push {
    bool all = false;
    bool current = false;  // as of GuestVms
    std::vector<GuestVm> vms{};
    std::vector<std::string> gone{};  // UUIDs
    bool operator==(Push const&) const = default;
};

// A VM's vf-guest has begun to wait for work.
struct Waits {
    VmIdentity vm;
};

using Message = std::variant<Greeting, Request, Answer, Push, Waits>;

// The line ends with a newline.
[[nodiscard]] std::string to_line(Message const& message);
// Parses a line without its newline. invalid_request for anything that to_line() does not make.
[[nodiscard]] Result<Message> parse_message(std::string_view line);

}  // namespace vfmgr::guestd
