// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/step.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "api/types/json_text.hpp"

namespace vfmgr {

namespace {

template <class F, Of<LegId> V>
void fields(F& f, V& leg) {
    f.value("pf", leg.pf);
    f.maybe("vlan", leg.vlan);
}

// What is put back may be what a driver reported, the zero MAC for example: no rules of a wish.
constexpr auto write_settings = []<class Out>(Out& out, VfSpec const& settings) {
    if constexpr (std::is_same_v<Out, std::string>)
        append_json(out, settings);
    else
        to_json(out, settings);
};

template <class F, Of<VfChange> V>
void fields(F& f, V& change) {
    f.value("index", change.index);
    f.with("settings", change.settings, write_settings, read_reported);
}

// The discriminator of each step in the journal. Names are for ever: old journals hold them.
template <class S>
constexpr std::string_view step_name;

template <>
constexpr std::string_view step_name<SetNumVfs> = "set_num_vfs";
template <class F, Of<SetNumVfs> V>
void fields(F& f, V& step) {
    f.value("pf", step.pf);
    f.value("count", step.count);
}

template <>
constexpr std::string_view step_name<ConfigureVfs> = "configure_vfs";
template <class F, Of<ConfigureVfs> V>
void fields(F& f, V& step) {
    f.value("pf", step.pf);
    f.value("changes", step.changes);
    f.defaulted("best_effort", step.best_effort);
}

template <>
constexpr std::string_view step_name<BindVfs> = "bind_vfs";
template <class F, Of<BindVfs> V>
void fields(F& f, V& step) {
    f.value("pf", step.pf);
    f.value("vfs", step.vfs);
    f.maybe("driver", step.driver);
}

template <>
constexpr std::string_view step_name<ResetVf> = "reset_vf";
template <class F, Of<ResetVf> V>
void fields(F& f, V& step) {
    f.value("vf", step.vf);
}

template <>
constexpr std::string_view step_name<SetLink> = "set_link";
template <class F, Of<SetLink> V>
void fields(F& f, V& step) {
    f.value("leg", step.leg);
    f.value("up", step.up);
    f.value("mtu", step.mtu);
}

template <>
constexpr std::string_view step_name<AddVlanLeg> = "add_vlan_leg";
template <class F, Of<AddVlanLeg> V>
void fields(F& f, V& step) {
    f.value("leg", step.leg);
}

template <>
constexpr std::string_view step_name<RemoveVlanLeg> = "remove_vlan_leg";
template <class F, Of<RemoveVlanLeg> V>
void fields(F& f, V& step) {
    f.value("leg", step.leg);
}

template <>
constexpr std::string_view step_name<AddAddress> = "add_address";
template <class F, Of<AddAddress> V>
void fields(F& f, V& step) {
    f.value("leg", step.leg);
    f.value("address", step.address);
}

template <>
constexpr std::string_view step_name<RemoveAddress> = "remove_address";
template <class F, Of<RemoveAddress> V>
void fields(F& f, V& step) {
    f.value("leg", step.leg);
    f.value("address", step.address);
}

template <>
constexpr std::string_view step_name<AddPeer> = "add_peer";
template <class F, Of<AddPeer> V>
void fields(F& f, V& step) {
    f.value("leg", step.leg);
    f.value("address", step.address);
    f.value("mac", step.mac);
    f.value("source", step.source);
}

template <>
constexpr std::string_view step_name<RemovePeer> = "remove_peer";
template <class F, Of<RemovePeer> V>
void fields(F& f, V& step) {
    f.value("leg", step.leg);
    f.value("address", step.address);
}

template <>
constexpr std::string_view step_name<AddRdmaLink> = "add_rdma_link";
template <class F, Of<AddRdmaLink> V>
void fields(F& f, V& step) {
    f.value("pf", step.pf);
}

template <>
constexpr std::string_view step_name<RemoveRdmaLink> = "remove_rdma_link";
template <class F, Of<RemoveRdmaLink> V>
void fields(F& f, V& step) {
    f.value("pf", step.pf);
}

template <>
constexpr std::string_view step_name<AttachHostdev> = "attach_hostdev";
template <class F, Of<AttachHostdev> V>
void fields(F& f, V& step) {
    f.value("vm_uuid", step.vm_uuid);
    f.value("attachment", step.attachment);
    f.value("vf", step.vf);
    f.value("pci", step.pci);
    f.maybe("mac", step.mac);
    f.value("live", step.live);
    f.value("config", step.config);
    f.value("vm_name", step.vm_name);
}

template <>
constexpr std::string_view step_name<DetachHostdev> = "detach_hostdev";
template <class F, Of<DetachHostdev> V>
void fields(F& f, V& step) {
    f.value("vm_uuid", step.vm_uuid);
    f.value("attachment", step.attachment);
    f.value("vf", step.vf);
    f.value("pci", step.pci);
    f.value("live", step.live);
    f.value("config", step.config);
    f.value("vm_name", step.vm_name);
}

template <>
constexpr std::string_view step_name<AwaitVerification> = "await_verification";
template <class F, Of<AwaitVerification> V>
void fields(F& f, V& step) {
    f.value("attachment", step.attachment);
    f.value("timeout_seconds", step.timeout_seconds);
}

// --- sentences -----------------------------------------------------------------------------

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
        // A thousand are too many to read; the journal has all of them.
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
    std::string operator()(SetLink const& step) const {
        return fmt::format("set {} {} with MTU {}", to_string(step.leg), step.up ? "up" : "down",
                           step.mtu);
    }
    std::string operator()(AddVlanLeg const& step) const {
        return fmt::format("make the VLAN device {}", to_string(step.leg));
    }
    std::string operator()(RemoveVlanLeg const& step) const {
        return fmt::format("remove the VLAN device {}", to_string(step.leg));
    }
    std::string operator()(AddAddress const& step) const {
        return fmt::format("add the host's address {} to {}", to_string(step.address),
                           to_string(step.leg));
    }
    std::string operator()(RemoveAddress const& step) const {
        return fmt::format("remove the host's address {} from {}", to_string(step.address),
                           to_string(step.leg));
    }
    std::string operator()(AddPeer const& step) const {
        return fmt::format("route {} over {} to {} only", to_string(step.address),
                           to_string(step.leg), to_string(step.mac));
    }
    std::string operator()(RemovePeer const& step) const {
        return fmt::format("remove the route to {} over {}", to_string(step.address),
                           to_string(step.leg));
    }
    std::string operator()(AddRdmaLink const& step) const {
        return fmt::format("make a SoftRoCE device on {}", to_string(step.pf));
    }
    std::string operator()(RemoveRdmaLink const& step) const {
        return fmt::format("remove the SoftRoCE device of {}", to_string(step.pf));
    }
    std::string operator()(AttachHostdev const& step) const {
        return fmt::format("attach {} ({}) to VM {}: {}", text(step.vf), to_string(step.pci),
                           step.vm_name, where(step.live, step.config));
    }
    std::string operator()(DetachHostdev const& step) const {
        return fmt::format("detach {} ({}) from VM {}: {}", text(step.vf), to_string(step.pci),
                           step.vm_name, where(step.live, step.config));
    }
    std::string operator()(AwaitVerification const& step) const {
        return fmt::format("wait up to {} s until RDMA over attachment {} is proved",
                           step.timeout_seconds, step.attachment);
    }
};

// As a JsonWriter or a JsonText: its name, then its members.
template <class Writer, class Out>
void write(Out& out, Step const& step) {
    std::visit(
        [&]<class S>(S const& alternative) {
            Writer writer(out);
            writer.value("step", std::string(step_name<S>));
            fields(writer, alternative);
        },
        step);
}

// Reads alternative S if the discriminator names it.
template <class S>
bool read_if_named(std::string_view name, JsonReader& reader, Step& out) {
    if (name != step_name<S>) return false;
    S step;
    fields(reader, step);
    out = std::move(step);
    return true;
}

template <class... S>
bool read_named(std::string_view name, JsonReader& reader, std::variant<S...>& out) {
    return (read_if_named<S>(name, reader, out) || ...);
}

}  // namespace

std::string to_string(LegId const& leg) {
    if (!leg.vlan) return to_string(leg.pf);
    return fmt::format("{} vlan {}", to_string(leg.pf), *leg.vlan);
}

PciAddress pf_of(KernelStep const& step) {
    return std::visit([](auto const& one) { return pf_in(one); }, step);
}

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
    return std::visit(Sentence{}, step);
}

void to_json(nlohmann::json& out, LegId const& leg) {
    JsonWriter writer(out);
    fields(writer, leg);
}

void read(JsonReader& reader, LegId& leg) {
    fields(reader, leg);
    if (leg.vlan && (*leg.vlan < 1 || *leg.vlan > 4094))
        reader.complain("vlan", "must be from 1 to 4094");
}

void to_json(nlohmann::json& out, VfChange const& change) {
    JsonWriter writer(out);
    fields(writer, change);
}

void append_json(std::string& text, VfChange const& change) {
    JsonText writer(text);
    fields(writer, change);
}

void read(JsonReader& reader, VfChange& change) {
    fields(reader, change);
}

void to_json(nlohmann::json& out, Step const& step) {
    write<JsonWriter>(out, step);
}

void append_json(std::string& text, Step const& step) {
    write<JsonText>(text, step);
}

void read(JsonReader& reader, Step& step) {
    std::string name;
    auto const start = reader.mark();
    reader.value("step", name);
    if (reader.clean_since(start) && !read_named(name, reader, step))
        reader.complain("step", "names no step");
}

}  // namespace vfmgr
