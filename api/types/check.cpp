// SPDX-License-Identifier: Apache-2.0
#include "api/types/check.hpp"

#include <algorithm>

#include "api/types/json.hpp"

namespace vfmgr {

namespace {

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

void to_json(nlohmann::json& out, Remedy const& remedy) {
    JsonWriter writer(out);
    fields(writer, remedy);
}
void read(JsonReader& reader, Remedy& remedy) {
    fields(reader, remedy);
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
