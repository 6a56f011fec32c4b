// SPDX-License-Identifier: Apache-2.0
#include "api/types/event.hpp"

#include "api/types/json_text.hpp"

namespace vfmgr {

template <class F, Of<Event> V>
void fields(F& f, V& event) {
    f.value("number", event.number);
    f.value("at", event.at);
    f.value("kind", event.kind);
    f.nullable("pf", event.pf);
    f.nullable("vf", event.vf);
    f.nullable("attachment", event.attachment);
    f.nullable("vm", event.vm);
    f.nullable("vm_uuid", event.vm_uuid);
    f.nullable("rdma_link", event.rdma_link);
    f.nullable("network", event.network);
    f.nullable("pool", event.pool);
    f.nullable("reservation", event.reservation);
    f.nullable("tenant", event.tenant);
    f.nullable("token", event.token);
    f.nullable("operation", event.operation);
    f.nullable("verdict", event.verdict);
    f.nullable("because_of", event.because_of);
    f.value("detail", event.detail);
    f.nullable("certificate", event.certificate);
}

template struct Json<Event>;

void append_json(std::string& text, Event const& event) {
    JsonText writer(text);
    fields(writer, event);
}

}  // namespace vfmgr
