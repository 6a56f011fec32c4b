// SPDX-License-Identifier: Apache-2.0
#include "api/types/certificate.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

namespace {

template <class F, Of<Certificate> V>
void fields(F& f, V& certificate) {
    f.value("vf", certificate.vf);
    f.value("vf_pci", certificate.vf_pci);
    f.value("attachment", certificate.attachment);
    f.value("vm_name", certificate.vm_name);
    f.with("settings", certificate.settings, known_to_json, read_reported);
    f.nullable("driver", certificate.driver);
    f.value("seen_at", certificate.seen_at);
}

}  // namespace

void to_json(nlohmann::json& out, Certificate const& certificate) {
    JsonWriter writer(out);
    fields(writer, certificate);
}

void read(JsonReader& reader, Certificate& certificate) {
    fields(reader, certificate);
}

}  // namespace vfmgr
