// SPDX-License-Identifier: Apache-2.0
#include "api/types/operation.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<OperationStep> V>
void fields(F& f, V& step) {
    f.value("sentence", step.sentence);
    f.value("state", step.state);
    f.defaulted("remarks", step.remarks);
}

template <class F, Of<Operation> V>
void fields(F& f, V& operation) {
    f.value("id", operation.id);
    f.value("kind", operation.kind);
    f.value("state", operation.state);
    f.value("subject", operation.subject);
    f.value("steps", operation.steps);
    f.nullable("problem", operation.problem);
    f.nullable("certificate", operation.certificate);
    f.value("requested_by", operation.requested_by);
    f.defaulted("request_id", operation.request_id);
    f.value("created_at", operation.created_at);
    f.nullable("finished_at", operation.finished_at);
}

template struct Json<OperationStep>;
template struct Json<Operation>;

}  // namespace vfmgr
