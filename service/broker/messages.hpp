// SPDX-License-Identifier: Apache-2.0
// Messages between the front (vfmgrd) and the broker: one JSON object per line, each way. The
// broker speaks first, with its greeting. Requests and answers then go in any order, matched by id.
// Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "service/bell.hpp"
#include "vfmgr/hypervisor/hypervisor.hpp"
#include "vfmgr/kernel/kernel.hpp"

namespace vfmgr::broker {

// Both ends have the same, or do not work together: they are of one package, but one of them may
// still run when the other has been upgraded.
inline constexpr std::uint32_t protocol = 2;

enum class Call {
    observe,        // the kernel: `pf`, or the host's network alone, or everything
    observe_vms,    // `vm_uuid`, or every domain
    perform,        // `step`
    read_firmware,  // of `pf`'s card, or every card
    read_traffic,   // of `pf`, or every PF
    settle,         // `vm_uuid`
    // What the doctor and the search for other owners of PFs read, of which some is root's alone:
    // fixed lists (vfmgr/machine/sources.hpp), without arguments.
    collect_host,
    collect_owners,
};

struct Greeting {
    std::uint32_t protocol = broker::protocol;
    std::string version;  // of the package
    bool operator==(Greeting const&) const = default;
};

struct Request {
    std::uint64_t id = 0;  // repeated in the answer; not 0
    Call call = Call::observe;
    std::optional<PciAddress> pf{};
    bool host_network = false;  // of observe; without `pf`
    std::optional<std::string> vm_uuid{};
    std::optional<Step> step{};      // of the kernel or of a VM
    std::uint64_t milliseconds = 0;  // until the deadline of perform or settle
    bool operator==(Request const&) const = default;
};

// The domains that were observed. When they were is the front's to say: it asked before.
struct ObservedVms {
    std::vector<VmInfo> vms;
    bool vfio_variants = false;
    bool operator==(ObservedVms const&) const = default;
};

// Has an error, or what its call returns.
struct Answer {
    std::uint64_t id = 0;  // 0: answers nothing, but brings `news`
    std::optional<News> news{};
    std::optional<Error> error{};
    std::optional<KernelView> view{};
    std::optional<ObservedVms> vms{};  // also of a step, as it read the VM back
    std::vector<std::string> remarks{};
    std::optional<VfCounters> counters{};
    std::optional<std::vector<FirmwareCard>> firmware{};
    std::optional<std::vector<PfTraffic>> traffic{};
    std::optional<std::string> facts{};  // a bundle (vfmgr/machine/bundle.hpp)
    bool operator==(Answer const&) const = default;
};

[[nodiscard]] ObservedVms observed_vms(HypervisorView view);
// `at`: no later than when the observation began.
[[nodiscard]] HypervisorView view_of(ObservedVms observed, Time at);

// The line ends with a newline.
[[nodiscard]] std::string to_line(Greeting const& greeting);
[[nodiscard]] std::string to_line(Request const& request);
[[nodiscard]] std::string to_line(Answer const& answer);
// Parses a line without its newline. invalid_request for anything that to_line() does not make.
[[nodiscard]] Result<Greeting> parse_greeting(std::string_view line);
[[nodiscard]] Result<Request> parse_request(std::string_view line);
[[nodiscard]] Result<Answer> parse_answer(std::string_view line);

}  // namespace vfmgr::broker
