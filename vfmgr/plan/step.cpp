// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/step.hpp"

#include "api/types/json_text.hpp"

namespace vfmgr {

namespace {

// Writes through a JsonWriter or a JsonText: the step's name, then its members.
template <class Writer, class Out>
void write(Out& out, Step const& step) {
    visit_step(
        [&]<class S>(S const& alternative) {
            Writer writer(out);
            writer.value("step", std::string(S::step_name));
            fields(writer, alternative);
        },
        step);
}

// Reads alternative S if the discriminator names it.
template <class S>
bool read_if_named(std::string_view name, JsonReader& reader, Step& out) {
    if (name != S::step_name) return false;
    S step;
    fields(reader, step);
    out = std::move(step);
    return true;
}

// Reads the alternative of a KernelStep or a HypervisorStep that the discriminator names.
template <class... S>
bool read_named(std::string_view name, JsonReader& reader, Step& out, std::variant<S...> const*) {
    return (read_if_named<S>(name, reader, out) || ...);
}

bool read_named(std::string_view name, JsonReader& reader, Step& out) {
    return read_named(name, reader, out, static_cast<KernelStep const*>(nullptr)) ||
           read_named(name, reader, out, static_cast<HypervisorStep const*>(nullptr)) ||
           read_if_named<AwaitVerification>(name, reader, out);
}

template <class V, class... T>
concept OneOf = (Of<V, T> || ...);

}  // namespace

template <class F, Of<VfChange> V>
void fields(F& f, V& change) {
    f.value("index", change.index);
    // A restored value may be what a driver reported, the zero MAC for example: the rules for
    // requested values do not apply.
    f.read_by("settings", change.settings, read_reported);
}

template <class F, Of<SetNumVfs> V>
void fields(F& f, V& step) {
    f.value("pf", step.pf);
    f.value("count", step.count);
}

template <class F, Of<ConfigureVfs> V>
void fields(F& f, V& step) {
    f.value("pf", step.pf);
    f.value("changes", step.changes);
    f.defaulted("best_effort", step.best_effort);
}

template <class F, Of<BindVfs> V>
void fields(F& f, V& step) {
    f.value("pf", step.pf);
    f.value("vfs", step.vfs);
    f.maybe("driver", step.driver);
}

template <class F, Of<ResetVf> V>
void fields(F& f, V& step) {
    f.value("vf", step.vf);
}

template <class F, Of<SetPciValues> V>
void fields(F& f, V& step) {
    f.value("pf", step.pf);
    f.maybe("drivers_autoprobe", step.drivers_autoprobe);
    f.defaulted("no_override", step.no_override);
    f.defaulted("reset_methods", step.reset_methods);
}

template <class F, Of<SetLink> V>
void fields(F& f, V& step) {
    f.value("interface", step.interface);
    f.value("up", step.up);
    f.value("mtu", step.mtu);
}

template <class F, OneOf<AddVlanInterface, RemoveVlanInterface, AwaitCarrier> V>
void fields(F& f, V& step) {
    f.value("interface", step.interface);
}

template <class F, OneOf<AddAddress, RemoveAddress, RemovePeer> V>
void fields(F& f, V& step) {
    f.value("interface", step.interface);
    f.value("address", step.address);
}

template <class F, Of<AddPeer> V>
void fields(F& f, V& step) {
    f.value("interface", step.interface);
    f.value("address", step.address);
    f.value("mac", step.mac);
    f.value("source", step.source);
    f.defaulted("guest_plane", step.guest_plane);
}

template <class F, OneOf<AddRdmaLink, RemoveRdmaLink> V>
void fields(F& f, V& step) {
    f.value("pf", step.pf);
}

template <class F, Of<SetFirmware> V>
void fields(F& f, V& step) {
    f.value("pf", step.pf);
    f.value("settings", step.settings);
    f.value("was", step.was);
}

template <class F, Of<AddSoftRdmaLink> V>
void fields(F& f, V& step) {
    f.value("link", step.link);
}

template <class F, Of<RemoveSoftRdmaLink> V>
void fields(F& f, V& step) {
    f.value("name", step.name);
    f.value("force", step.force);
}

template <class F, OneOf<AttachExternal, DetachExternal> V>
void fields(F& f, V& step) {
    f.value("vf", step.vf);
    f.value("holder", step.holder);
    if constexpr (Of<V, AttachExternal>)
        f.maybe("uid", step.uid);
    else
        f.maybe("owner", step.owner);
}

template <class F, OneOf<AttachHostdev, DetachHostdev, MarkHostdev> V>
void fields(F& f, V& step) {
    f.value("vm_uuid", step.vm_uuid);
    f.value("attachment", step.attachment);
    f.value("vf", step.vf);
    f.value("pci", step.pci);
    if constexpr (Of<V, AttachHostdev>) f.maybe("mac", step.mac);
    if constexpr (!Of<V, MarkHostdev>) f.value("live", step.live);
    f.value("config", step.config);
    f.value("vm", step.vm);
    if constexpr (Of<V, AttachHostdev>) f.maybe("guest_address", step.guest_address);
    if constexpr (Of<V, DetachHostdev>) f.maybe("by_address", step.by_address);
    if constexpr (Of<V, MarkHostdev>) f.maybe("alias", step.alias);
    if constexpr (Of<V, MarkHostdev>) f.value("managed", step.managed);
}

template <class F, OneOf<AddVsock, PlaceHostdevs> V>
void fields(F& f, V& step) {
    f.value("vm_uuid", step.vm_uuid);
    if constexpr (Of<V, AddVsock>) {
        f.value("vf", step.vf);
        f.value("live", step.live);
        f.value("config", step.config);
    } else {
        f.value("hostdevs", step.hostdevs);
    }
    f.value("vm", step.vm);
}

template <class F, Of<AwaitVerification> V>
void fields(F& f, V& step) {
    f.value("attachment", step.attachment);
    f.value("timeout_seconds", step.timeout_seconds);
}

std::string to_string(KernelSubject const& subject) {
    auto const* const pf = std::get_if<PciAddress>(&subject);
    return pf ? to_string(*pf) : "the host's network";
}

KernelSubject subject_of(KernelStep const& step) {
    return std::visit([](auto const& one) { return subject_in(one); }, step);
}

void append_json(std::string& text, VfChange const& change) {
    JsonText writer(text);
    fields(writer, change);
}

void to_json(nlohmann::json& out, Step const& step) {
    write<JsonWriter>(out, step);
}

void append_json(std::string& text, Step const& step) {
    write<JsonText>(text, step);
}

void read(JsonReader& reader, Step& step) {
    std::string name;
    reader.value("step", name);
    if (reader.clean() && !read_named(name, reader, step)) reader.complain("step", "names no step");
}

}  // namespace vfmgr
