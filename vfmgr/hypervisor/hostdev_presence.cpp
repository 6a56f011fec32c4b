// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/hostdev_presence.hpp"

#include <fmt/format.h>

namespace vfmgr {

Result<Presence> presence(DomainXml const& domain, XmlPart part, AttachHostdev const& step) {
    auto const alias = hostdev_alias(step.attachment);
    auto const where = part == XmlPart::live ? "live" : "persistent";
    if (auto const* ours = find_alias(domain, alias)) {
        if (ours->pci == step.pci) return Presence::present;
        return fail(Problem::conflict,
                    fmt::format("device {} of VM {} ({}) is {}, not {}", alias, domain.name, where,
                                to_string(ours->pci), to_string(step.pci)),
                    fmt::format("detach attachment {} and attach it again", step.attachment));
    }
    if (auto const* other = find_host_pci(domain, step.pci))
        return fail(
            Problem::vf_in_use,
            fmt::format("{} is already in VM {} ({}), as {}", to_string(step.pci), domain.name,
                        where, other->alias ? *other->alias : "a device without an alias"),
            fmt::format("detach it from VM {} first, or request another VF", domain.name));
    return Presence::absent;
}

}  // namespace vfmgr
