// SPDX-License-Identifier: Apache-2.0
#include "api/types/history_event.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<HistoryEvent> V>
void fields(F& f, V& event) {
    f.value("number", event.number);
    f.value("at", event.at);
    f.value("kind", event.kind);
    f.value("pf", event.pf);
    f.nullable("vf", event.vf);
    f.nullable("attachment", event.attachment);
    f.nullable("vm", event.vm);
    f.nullable("operation", event.operation);
    f.nullable("because_of", event.because_of);
    f.value("detail", event.detail);
    f.nullable("certificate", event.certificate);
}

template struct Json<HistoryEvent>;

}  // namespace vfmgr
