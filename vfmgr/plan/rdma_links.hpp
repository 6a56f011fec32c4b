// SPDX-License-Identifier: Apache-2.0
// RDMA links in software that are asked for by name: which are made, which are not and why. rxe
// answers whoever reaches UDP port 4791 of its network, siw whoever reaches TCP ports of programs,
// so they are made only where the machine's owner says that a network is trusted. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

// Names of netdevs, from the root-owned configuration: [rdma_links] trusted_netdevs.
using TrustedNetdevs = std::vector<std::string>;

// Of the links that vfmgr makes for its own tests on a PF's netdev (AddRdmaLink).
inline constexpr std::string_view responders_link_prefix = "vfmgr_";

// Makes it, or has nothing to do. A link that is there already as it is wanted is taken over.
[[nodiscard]] Result<Plan> plan_rdma_link(HostView const& host, DesiredState const& desired,
                                          TrustedNetdevs const& trusted, SoftRdmaLink const& want);

struct RdmaLinkRemoval {
    std::string name;
    bool force = false;  // whoever uses it, processes excepted
};
// Only of a link that is wanted of vfmgr. Refuses while anybody uses it, or nobody can say. Of
// processes that use it force changes nothing: the kernel deletes it only when the last of them has
// closed it, and whoever asked hangs until then [src uverbs_main.c ib_uverbs_remove_one].
[[nodiscard]] Result<Plan> plan_rdma_link_removal(HostView const& host, DesiredState const& desired,
                                                  RdmaLinkRemoval const& what);

// Boot, and whenever the host has changed: a wanted link that is not there and can be made is made;
// otherwise the note says what it waits for.
[[nodiscard]] Plan plan_rdma_link_restore(HostNetworkView const& network,
                                          TrustedNetdevs const& trusted, SoftRdmaLink const& want);

// Wanted ones and software ones of others, by name.
[[nodiscard]] std::vector<RdmaLink> rdma_links(HostView const& host, DesiredState const& desired,
                                               TrustedNetdevs const& trusted);

// What to look at after one was made: whom it answers.
[[nodiscard]] std::string rdma_link_advice(SoftRdmaLink const& link);

// link_in_use, naming the processes among them.
[[nodiscard]] Result<void> check_processes(std::string const& name,
                                           std::vector<RdmaUser> const& users);
// "ibv_rc_pingpong (pid 812) has a queue pair".
[[nodiscard]] std::string user_sentence(RdmaUser const& user);

}  // namespace vfmgr
