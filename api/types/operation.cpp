// SPDX-License-Identifier: Apache-2.0
#include "api/types/operation.hpp"

#include "api/types/json.hpp"

namespace vfmgr {

namespace {

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

}  // namespace

void to_json(nlohmann::json& out, OperationStep const& step) {
    JsonWriter writer(out);
    fields(writer, step);
}

void read(JsonReader& reader, OperationStep& step) {
    fields(reader, step);
}

void to_json(nlohmann::json& out, Operation const& operation) {
    JsonWriter writer(out);
    fields(writer, operation);
}

void read(JsonReader& reader, Operation& operation) {
    fields(reader, operation);
}

}  // namespace vfmgr
