// SPDX-License-Identifier: Apache-2.0
#include "api/types/check.hpp"

#include <algorithm>

#include "api/types/json.hpp"

namespace vfmgr {

template <class F, Of<Remedy> V>
void fields(F& f, V& remedy) {
    f.value("commands", remedy.commands);
    f.value("blast_radius", remedy.blast_radius);
    f.value("note", remedy.note);
    f.value("drain", remedy.drain);
}

template <class F, Of<Evidence> V>
void fields(F& f, V& evidence) {
    f.value("source", evidence.source);
    f.value("text", evidence.text);
}

template <class F, Of<Finding> V>
void fields(F& f, V& finding) {
    f.value("rule", finding.rule);
    f.value("subject", finding.subject);
    f.value("result", finding.result);
    f.value("detail", finding.detail);
    f.value("evidence", finding.evidence);
    f.nullable("remedy", finding.remedy);
    f.nullable("caused_by", finding.caused_by);
}

template <class F, Of<CheckReport> V>
void fields(F& f, V& report) {
    f.value("machine", report.machine);
    f.value("collected_at", report.collected_at);
    f.value("kernel", report.kernel);
    f.value("findings", report.findings);
}

bool is_bad(Finding const& finding) {
    return finding.result == CheckResult::failed || finding.result == CheckResult::warning;
}

CheckResult worst(CheckReport const& report) {
    auto result = CheckResult::not_applicable;
    for (auto const& finding : report.findings) result = std::min(result, finding.result);
    return result;
}

template struct Json<Finding>;
template struct Json<CheckReport>;

}  // namespace vfmgr
