// SPDX-License-Identifier: Apache-2.0
#include "api/types/certificate.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, class V>
    requires(Of<V, Rotated<MacAddress>> || Of<V, Rotated<Guid>>)
void fields(F& f, V& rotated) {
    f.value("was", rotated.was);
    f.nullable("is", rotated.is);
}

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

template struct Json<CertificateMark>;
template struct Json<VfReset>;
template struct Json<Restored>;
template struct Json<RotatedAddresses>;
template struct Json<Certificate>;

}  // namespace vfmgr
