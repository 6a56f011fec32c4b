// SPDX-License-Identifier: Apache-2.0
// Which VFs a VM gets for requests with `near`: as near to its GPUs as their host's PCI tree
// allows, for all of the requests together. Pure and stable.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/plan/plan.hpp"

namespace vfmgr {

struct NearVf {
    NearGpu gpu;
    VfId vf;
    std::vector<Candidate> candidates;  // none: the request named the PF
};

// Why plans on PFs were refused, by PF: another one is chosen.
using RefusedPfs = std::map<PciAddress, Error>;

// In the order of `specs`, which are of one VM; absent for those without `near`. An Error when the
// VM has no GPU, or a request gets no VF.
[[nodiscard]] Result<std::vector<std::optional<NearVf>>> near_vfs(
    HostView const& host, DesiredState const& desired, std::vector<AttachmentSpec> const& specs,
    RefusedPfs const& refused);

// What an admin should know of the pair: how far it is, and what its switch does.
[[nodiscard]] std::vector<std::string> near_notes(HostView const& host, NearVf const& near);

// Plans the attachment of that VF.
[[nodiscard]] Result<AttachmentPlan> plan_near(HostView const& host, DesiredState const& desired,
                                               std::string const& id, AttachmentSpec const& spec,
                                               NearVf const& near, std::string_view host_seed);

// The same for a request by itself.
[[nodiscard]] Result<AttachmentPlan> plan_nearest(HostView const& host, DesiredState const& desired,
                                                  std::string const& id, AttachmentSpec const& spec,
                                                  std::string_view host_seed);

// The display controllers among a VM's PCI devices, running or as it will start, by address.
[[nodiscard]] std::vector<PciPlace> gpus_of(HostPlaces const& places, VmInfo const& vm);

}  // namespace vfmgr
