// SPDX-License-Identifier: Apache-2.0
#include "api/types/vlan.hpp"

#include "api/types/json_text.hpp"

namespace vfmgr {

template <class F, Of<Vlan> V>
void fields(F& f, V& vlan) {
    f.value("id", vlan.id);
    f.defaulted("qos", vlan.qos);
    f.defaulted("proto", vlan.proto);
}

void append_json(std::string& text, Vlan const& vlan) {
    JsonText writer(text);
    fields(writer, vlan);
}

void check(JsonReader& reader, Vlan const& vlan) {
    if (vlan.id > 4094) reader.complain("id", "must be from 0 to 4094; 0 means no tag");
    if (vlan.qos > 7) reader.complain("qos", "must be from 0 to 7");
}

template struct Json<Vlan>;

}  // namespace vfmgr
