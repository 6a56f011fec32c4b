// SPDX-License-Identifier: Apache-2.0
#include "api/types/certificate.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

namespace {

template <class F, Of<CertificateMark> V>
void fields(F& f, V& mark) {
    f.nullable("at", mark.at);
    f.nullable("operation", mark.operation);
    f.nullable("requested_by", mark.requested_by);
}

template <class F, Of<VfReset> V>
void fields(F& f, V& reset) {
    f.value("method", reset.method);
    f.value("done_at", reset.done_at);
}

template <class F, Of<Restored> V>
void fields(F& f, V& restored) {
    f.with("was", restored.was, known_to_json, read_reported);
    f.with("is", restored.is, known_to_json, read_reported);
}

template <class F, class Address>
void fields(F& f, Rotated<Address>& rotated) {
    f.value("was", rotated.was);
    f.nullable("is", rotated.is);
}
template <class F, class Address>
void fields(F& f, Rotated<Address> const& rotated) {
    f.value("was", rotated.was);
    f.nullable("is", rotated.is);
}

template <class F, Of<RotatedAddresses> V>
void fields(F& f, V& rotated) {
    f.nullable("mac", rotated.mac);
    f.nullable("node_guid", rotated.node_guid);
    f.nullable("port_guid", rotated.port_guid);
}

template <class F, Of<Certificate> V>
void fields(F& f, V& certificate) {
    f.value("vf", certificate.vf);
    f.value("vf_pci", certificate.vf_pci);
    f.value("attachment", certificate.attachment);
    f.value("vm", certificate.vm);
    f.with("settings", certificate.settings, known_to_json, read_reported);
    f.nullable("driver", certificate.driver);
    f.value("observed_at", certificate.observed_at);
    // Certificates from earlier vfmgrds have none of these.
    f.defaulted("attached", certificate.attached);
    f.defaulted("detached", certificate.detached);
    f.nullable("reset", certificate.reset);
    f.defaulted("restored", certificate.restored);
    f.defaulted("rotated", certificate.rotated);
    f.nullable("counters", certificate.counters);
}

}  // namespace

// Found by argument-dependent lookup, so these can't be in the unnamed namespace.
void to_json(nlohmann::json& out, CertificateMark const& part) {
    JsonWriter writer(out);
    fields(writer, part);
}
void read(JsonReader& reader, CertificateMark& part) {
    fields(reader, part);
}
void to_json(nlohmann::json& out, VfReset const& part) {
    JsonWriter writer(out);
    fields(writer, part);
}
void read(JsonReader& reader, VfReset& part) {
    fields(reader, part);
}
void to_json(nlohmann::json& out, Restored const& part) {
    JsonWriter writer(out);
    fields(writer, part);
}
void read(JsonReader& reader, Restored& part) {
    fields(reader, part);
}
template <class Address>
void to_json(nlohmann::json& out, Rotated<Address> const& part) {
    JsonWriter writer(out);
    fields(writer, part);
}
template <class Address>
void read(JsonReader& reader, Rotated<Address>& part) {
    fields(reader, part);
}
void to_json(nlohmann::json& out, RotatedAddresses const& part) {
    JsonWriter writer(out);
    fields(writer, part);
}
void read(JsonReader& reader, RotatedAddresses& part) {
    fields(reader, part);
}

void to_json(nlohmann::json& out, Certificate const& certificate) {
    JsonWriter writer(out);
    fields(writer, certificate);
}

void read(JsonReader& reader, Certificate& certificate) {
    fields(reader, certificate);
}

}  // namespace vfmgr
