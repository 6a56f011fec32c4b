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

template <class F, Of<Span> V>
void fields(F& f, V& span) {
    f.value("kind", span.kind);
    f.value("what", span.what);
    f.value("began_us", span.began_us);
    f.value("took_us", span.took_us);
    f.maybe("step", span.step);
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
    f.nullable("vm_uuid", operation.vm_uuid);
    f.defaulted("attachments", operation.attachments);
    f.defaulted("spans", operation.spans);
}

template <class F, Of<PlannedStep> V>
void fields(F& f, V& step) {
    f.value("sentence", step.sentence);
}

template <class F, Of<PlanView> V>
void fields(F& f, V& plan) {
    f.value("steps", plan.steps);
    f.defaulted("blast_radius", plan.blast_radius);
    f.defaulted("notes", plan.notes);
}

template <class F, Of<DryRun> V>
void fields(F& f, V& dry_run) {
    f.value("plan", dry_run.plan);
    f.maybe("attachment", dry_run.attachment);
    f.defaulted("attachments", dry_run.attachments);
}

template struct Json<PlanView>;
template struct Json<DryRun>;
template struct Json<Operation>;

}  // namespace vfmgr
