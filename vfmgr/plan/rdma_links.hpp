// SPDX-License-Identifier: Apache-2.0
// Software RDMA links that are requested by name: which are made, which are not, and why. rxe
// answers any host that reaches UDP port 4791 of its network, siw any that reaches TCP ports of
// programs. So they are made only where the machine's owner declares a network trusted. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

// Names of netdevs, from the root-owned configuration: [rdma_links] trusted_netdevs.
using TrustedNetdevs = std::vector<std::string>;

// Prefix of the links that vfmgr makes for its own tests on a PF's netdev (AddRdmaLink).
inline constexpr std::string_view responders_link_prefix = "vfmgr_";

// Plans to make the link, if needed. An existing link that matches the request is taken over.
[[nodiscard]] Result<Plan> plan_rdma_link(HostView const& host, DesiredState const& desired,
                                          TrustedNetdevs const& trusted,
                                          SoftRdmaLink const& requested);

struct RdmaLinkRemoval {
    std::string name;
    bool force = false;  // despite any user, except processes
};
// Removes only a link that was requested from vfmgr. Refuses while it is in use, or when its use is
// unknown. force changes nothing for processes that use it: the kernel deletes the link only when
// the last of them has closed it, and the caller hangs until then [src uverbs_main.c
// ib_uverbs_remove_one].
[[nodiscard]] Result<Plan> plan_rdma_link_removal(HostView const& host, DesiredState const& desired,
                                                  RdmaLinkRemoval const& what);

// Runs at boot and whenever the host has changed: makes a desired link that is absent and can be
// made; otherwise the note says what it waits for.
[[nodiscard]] Plan plan_rdma_link_restore(HostNetworkView const& network,
                                          TrustedNetdevs const& trusted,
                                          SoftRdmaLink const& requested);

// Returns the desired links and software links made by others, by name.
[[nodiscard]] std::vector<RdmaLink> rdma_links(HostView const& host, DesiredState const& desired,
                                               TrustedNetdevs const& trusted);

// Returns what to check after a link was made: which hosts it answers.
[[nodiscard]] std::string rdma_link_advice(SoftRdmaLink const& link);

// Fails with link_in_use, naming the processes in `users`.
[[nodiscard]] Result<void> check_processes(std::string const& name,
                                           std::vector<RdmaUser> const& users);
// "ibv_rc_pingpong (pid 812) has a queue pair".
[[nodiscard]] std::string user_sentence(RdmaUser const& user);

}  // namespace vfmgr
