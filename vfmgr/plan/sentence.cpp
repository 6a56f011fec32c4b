// SPDX-License-Identifier: Apache-2.0
// Puts steps into words.
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "api/types/json.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {
namespace {

std::string text(VfId const& vf) {
    return fmt::format("VF {} of {}", vf.index, to_string(vf.pf));
}

// "0-6, 9"
std::string ranges_of(std::vector<std::uint16_t> const& indices) {
    std::vector<std::string> parts;
    for (std::size_t first = 0, next = 0; first < indices.size(); first = next) {
        for (next = first + 1; next < indices.size() && indices[next] == indices[next - 1] + 1;)
            ++next;
        parts.push_back(next - first == 1
                            ? fmt::format("{}", indices[first])
                            : fmt::format("{}-{}", indices[first], indices[next - 1]));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string where(bool live, bool config) {
    if (live && config) return "the running VM and its persistent XML";
    return live ? "the running VM" : "the persistent XML";
}

struct Sentence {
    std::string operator()(SetNumVfs const& step) const {
        if (step.count == 0) return fmt::format("remove every VF of {}", to_string(step.pf));
        return fmt::format("create {} VF{} on {}", step.count, step.count == 1 ? "" : "s",
                           to_string(step.pf));
    }
    std::string operator()(ConfigureVfs const& step) const {
        // A list of a thousand is unreadable; the journal has all of them.
        constexpr std::size_t named_max = 8;
        auto const named = std::min(step.changes.size(), named_max);
        std::vector<std::string> parts;
        for (auto const& change : std::span(step.changes).first(named))
            parts.push_back(
                fmt::format("VF {} ({})", change.index, settings_sentence(change.settings)));
        if (named < step.changes.size())
            parts.push_back(fmt::format("and {} more VFs", step.changes.size() - named));
        return fmt::format("configure on {}: {}", to_string(step.pf), fmt::join(parts, "; "));
    }
    std::string operator()(BindVfs const& step) const {
        auto const one = step.vfs.size() == 1;
        auto const which =
            fmt::format("VF{} {} of {}", one ? "" : "s", ranges_of(step.vfs), to_string(step.pf));
        if (!step.driver)
            return fmt::format("unbind {} from {} driver", which, one ? "its" : "their");
        return fmt::format("bind {} to {}", which, *step.driver);
    }
    std::string operator()(ResetVf const& step) const {
        return fmt::format("reset {} (FLR)", text(step.vf));
    }
    std::string operator()(SetPciValues const& step) const {
        std::vector<std::string> parts;
        if (step.drivers_autoprobe)
            parts.push_back(fmt::format("sriov_drivers_autoprobe of {}", to_string(step.pf)));
        for (auto const index : step.no_override)
            parts.push_back("driver_override of " + text({step.pf, index}));
        for (auto const& vf : step.reset_methods)
            parts.push_back("reset_method of " + text({step.pf, vf.index}));
        return fmt::format("restore {}", fmt::join(parts, ", "));
    }
    std::string operator()(SetLink const& step) const {
        return fmt::format("set {} {} with MTU {}", to_string(step.interface),
                           step.up ? "up" : "down", step.mtu);
    }
    std::string operator()(AwaitCarrier const& step) const {
        return fmt::format("wait for the carrier of {}", to_string(step.interface));
    }
    std::string operator()(AddVlanInterface const& step) const {
        return fmt::format("create the VLAN device {}", to_string(step.interface));
    }
    std::string operator()(RemoveVlanInterface const& step) const {
        return fmt::format("remove the VLAN device {}", to_string(step.interface));
    }
    std::string operator()(AddAddress const& step) const {
        return fmt::format("add the host's address {} to {}", to_string(step.address),
                           to_string(step.interface));
    }
    std::string operator()(RemoveAddress const& step) const {
        return fmt::format("remove the host's address {} from {}", to_string(step.address),
                           to_string(step.interface));
    }
    std::string operator()(AddPeer const& step) const {
        return fmt::format("route {} over {} to {} only{}", to_string(step.address),
                           to_string(step.interface), to_string(step.mac),
                           step.guest_plane ? ", and open the guest plane's TCP port to it" : "");
    }
    std::string operator()(RemovePeer const& step) const {
        return fmt::format("remove the route to {} over {}", to_string(step.address),
                           to_string(step.interface));
    }
    std::string operator()(AddRdmaLink const& step) const {
        return fmt::format("create a SoftRoCE device on {}", to_string(step.pf));
    }
    std::string operator()(RemoveRdmaLink const& step) const {
        return fmt::format("remove the SoftRoCE device of {}", to_string(step.pf));
    }
    std::string operator()(AddSoftRdmaLink const& step) const {
        return fmt::format("create the {} link {} on {}", enum_name(step.link.type), step.link.name,
                           step.link.ifname);
    }
    std::string operator()(RemoveSoftRdmaLink const& step) const {
        return fmt::format("delete the RDMA link {}{}", step.name,
                           step.force ? ", even while it is in use" : "");
    }
    std::string operator()(SetFirmware const& step) const {
        return fmt::format("set in the firmware of {}: {}", to_string(step.pf),
                           fmt::join(assignments(step.settings), " "));
    }
    std::string operator()(AttachExternal const& step) const {
        return fmt::format("attach {} to {}, which libvirt does not run{}", text(step.vf),
                           step.holder,
                           step.uid ? fmt::format(": user {} owns its VFIO nodes", *step.uid) : "");
    }
    std::string operator()(DetachExternal const& step) const {
        return fmt::format(
            "detach {} from {}, which libvirt does not run{}", text(step.vf), step.holder,
            step.owner ? fmt::format(": user {} owns its VFIO nodes", *step.owner) : "");
    }
    std::string operator()(AttachHostdev const& step) const {
        return fmt::format("attach {} ({}) to VM {}: {}{}", text(step.vf), to_string(step.pci),
                           step.vm, where(step.live, step.config),
                           step.guest_address ? ", at " + to_string(*step.guest_address) : "");
    }
    std::string operator()(DetachHostdev const& step) const {
        return fmt::format("detach {} ({}) from VM {}: {}", text(step.vf), to_string(step.pci),
                           step.vm, where(step.live, step.config));
    }
    std::string operator()(MarkHostdev const& step) const {
        auto const whose = step.alias == hostdev_alias(step.attachment)
                               ? fmt::format("attachment {}", step.attachment)
                               : fmt::format("what it was before attachment {}", step.attachment);
        return fmt::format("record {} ({}) of VM {} as {}{}", text(step.vf), to_string(step.pci),
                           step.vm, whose, step.config ? ", in its persistent XML, too" : "");
    }
    std::string operator()(AddVsock const& step) const {
        return fmt::format("give VM {} a vsock device: {}", step.vm, where(step.live, step.config));
    }
    std::string operator()(PlaceHostdevs const& step) const {
        std::vector<std::string> devices;
        for (auto const& each : step.hostdevs) devices.push_back(to_string(each.pci));
        if (devices.empty())
            return fmt::format("put VM {}'s host devices back to where they were: {}", step.vm,
                               where(false, true));
        return fmt::format("place {} in VM {}'s PCI tree as on the host: {}",
                           fmt::join(devices, ", "), step.vm, where(false, true));
    }
    std::string operator()(AwaitVerification const& step) const {
        return fmt::format("wait up to {} s until RDMA over attachment {} is proved",
                           step.timeout_seconds, step.attachment);
    }
};

}  // namespace

std::string settings_sentence(VfSpec const& settings) {
    nlohmann::json members = settings;
    std::vector<std::string> parts;
    if (settings.vlan) {
        auto const& [id, qos, proto] = *settings.vlan;
        parts.push_back(fmt::format("vlan {} qos {} {}", id, qos, enum_name(proto)));
        members.erase("vlan");
    }
    for (auto const& [name, value] : members.items()) {
        if (value.is_boolean())
            parts.push_back(name + (value.get<bool>() ? " on" : " off"));
        else
            parts.push_back(name + " " +
                            (value.is_string() ? value.get<std::string>() : value.dump()));
    }
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string sentence(Step const& step) {
    return visit_step(Sentence{}, step);
}

}  // namespace vfmgr
