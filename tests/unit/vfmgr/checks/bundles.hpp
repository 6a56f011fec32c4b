// SPDX-License-Identifier: Apache-2.0
// The bundles of tests/fixtures: whole machines, and cases made from them.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/unit/repository.hpp"
#include "vfmgr/checks/doctor.hpp"
#include "vfmgr/checks/host/rules.hpp"
#include "vfmgr/machine/bundle.hpp"

namespace vfmgr::checks::test {

namespace fs = std::filesystem;

inline fs::path const bundles = vfmgr::test::repository() / "tests/fixtures/bundles";

inline std::string content_of(fs::path const& file) {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
}

inline std::vector<std::string> names_in(fs::path const& folder) {
    std::vector<std::string> names;
    for (auto const& entry : fs::directory_iterator(folder))
        if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
    std::sort(names.begin(), names.end());
    return names;
}

// Whole machines; those of the lab's troubles are "lab/NAME".
inline std::vector<std::string> all_bundles() {
    auto names = names_in(bundles);
    for (auto const& name : names_in(bundles / "lab")) names.push_back("lab/" + name);
    return names;
}

inline nlohmann::json document_of(std::string const& name);

// {"based_on": "igx", "patch": {…} as RFC 7396}
inline nlohmann::json patched(nlohmann::json const& change) {
    auto document = document_of(change.at("based_on").get<std::string>());
    document.merge_patch(change.at("patch"));
    return document;
}

// A trouble of the lab is kept as what differs from the host that is well.
inline nlohmann::json document_of(std::string const& name) {
    static std::map<std::string, nlohmann::json> read;  // most cases are based on a few of them
    auto const [file, first] = read.try_emplace(name);
    if (first) file->second = nlohmann::json::parse(content_of(bundles / (name + ".json")));
    return file->second.contains("based_on") ? patched(file->second) : file->second;
}

inline Facts facts_of(nlohmann::json const& document) {
    auto facts = from_bundle(document.dump());
    if (!facts) throw std::runtime_error(facts.error().detail);
    return std::move(*facts);
}

inline CheckReport report_on(nlohmann::json const& document) {
    return diagnose(facts_of(document), all_rules());
}

// {"based_on": "igx", "patch": {…} as RFC 7396, "expect": {"iommu.enabled": "failed"}}; a rule may
// be followed by a subject, a result by ": " and words found in detail, evidence or remedy.
struct Case {
    std::string name;
    nlohmann::json document;
};

inline void PrintTo(Case const& one, std::ostream* out) {
    *out << one.document.at("patch");
}

inline std::vector<Case> all_cases() {
    std::vector<Case> cases;
    for (auto const& file : names_in(bundles / "cases")) {
        auto const all = nlohmann::json::parse(content_of(bundles / "cases" / (file + ".json")));
        for (auto const& [name, document] : all.items())
            cases.push_back({file + "_" + name, document});
    }
    return cases;
}

inline nlohmann::json document_of(Case const& one) {
    auto document = patched(one.document);
    document["provenance"] = "synthetic";
    return document;
}

inline CheckReport report_on(Case const& one) {
    return report_on(document_of(one));
}

// A bundle or a case, and what all rules say of it.
struct JudgedMachine {
    std::string name;
    std::string document;
    Facts facts;
    CheckReport report;
};

// Every bundle and every case; judged once, since that takes most of these tests' time.
inline std::vector<JudgedMachine> const& all_machines() {
    static auto const all = [] {
        std::vector<JudgedMachine> machines;
        auto const judge = [&](std::string const& name, nlohmann::json const& document) {
            auto facts = facts_of(document);
            auto report = diagnose(facts, all_rules());
            machines.push_back({name, document.dump(), std::move(facts), std::move(report)});
        };
        for (auto const& name : all_bundles()) judge(name, document_of(name));
        for (auto const& one : all_cases()) judge(one.name, document_of(one));
        return machines;
    }();
    return all;
}

}  // namespace vfmgr::checks::test
