// SPDX-License-Identifier: Apache-2.0
#include "api/types/check.hpp"

#include <algorithm>

#include "api/types/json.hpp"

namespace vfmgr {

namespace {

template <class F, Of<Cure> V>
void fields(F& f, V& cure) {
    f.value("commands", cure.commands);
    f.value("blast_radius", cure.blast_radius);
    f.value("note", cure.note);
    f.value("drain", cure.drain);
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
    f.nullable("cure", finding.cure);
}

template <class F, Of<CheckReport> V>
void fields(F& f, V& report) {
    f.value("machine", report.machine);
    f.value("collected_at", report.collected_at);
    f.value("kernel", report.kernel);
    f.value("findings", report.findings);
}

}  // namespace

CheckResult worst(CheckReport const& report) {
    auto result = CheckResult::not_applicable;
    for (auto const& finding : report.findings) result = std::min(result, finding.result);
    return result;
}

void to_json(nlohmann::json& out, Cure const& cure) {
    JsonWriter writer(out);
    fields(writer, cure);
}
void read(JsonReader& reader, Cure& cure) {
    fields(reader, cure);
}
void to_json(nlohmann::json& out, Evidence const& evidence) {
    JsonWriter writer(out);
    fields(writer, evidence);
}
void read(JsonReader& reader, Evidence& evidence) {
    fields(reader, evidence);
}
void to_json(nlohmann::json& out, Finding const& finding) {
    JsonWriter writer(out);
    fields(writer, finding);
}
void read(JsonReader& reader, Finding& finding) {
    fields(reader, finding);
}
void to_json(nlohmann::json& out, CheckReport const& report) {
    JsonWriter writer(out);
    fields(writer, report);
}
void read(JsonReader& reader, CheckReport& report) {
    fields(reader, report);
}

}  // namespace vfmgr
