// SPDX-License-Identifier: Apache-2.0
// Problems match api/problems.md, and survive their own JSON.
#include "api/types/problem.hpp"
#include "tests/unit/repository.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

namespace vfmgr {
namespace {

constexpr int problem_count = static_cast<int>(Problem::internal) + 1;

std::vector<std::string> lines_of_problems_md() {
    std::ifstream file(test::repository() / "api/problems.md");
    EXPECT_TRUE(file.is_open());
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
}

std::string kebab(std::string text) {
    std::replace(text.begin(), text.end(), '_', '-');
    return text;
}

// "| [vf_in_use](#vf-in-use) | 409 | 4 |"
std::vector<std::string> table_rows() {
    std::vector<std::string> rows;
    for (auto const& line : lines_of_problems_md())
        if (line.starts_with("| [")) rows.push_back(line);
    return rows;
}

TEST(Problem, IsTheTableOfTheDocument) {
    auto const rows = table_rows();
    ASSERT_EQ(rows.size(), static_cast<std::size_t>(problem_count));
    std::set<std::string_view> titles;
    for (int i = 0; i < problem_count; ++i) {
        auto const problem = static_cast<Problem>(i);
        std::ostringstream row;
        row << "| [" << code(problem) << "](#" << kebab(std::string(code(problem))) << ") | "
            << http_status(problem) << " | " << exit_code(problem) << " |";
        EXPECT_EQ(rows[static_cast<std::size_t>(i)], row.str());
        EXPECT_TRUE(titles.insert(title(problem)).second) << title(problem) << " twice";
        EXPECT_FALSE(title(problem).empty()) << code(problem);
    }
}

// Each section opens with its numbers; a status of HTTP's own may stand between them.
TEST(Problem, HasASectionWithTheSameNumbers) {
    auto const lines = lines_of_problems_md();
    for (int i = 0; i < problem_count; ++i) {
        auto const problem = static_cast<Problem>(i);
        auto const heading =
            std::find(lines.begin(), lines.end(), "## " + kebab(std::string(code(problem))));
        ASSERT_GT(lines.end() - heading, 2) << "no section for " << code(problem);
        std::regex const numbers("Status " + std::to_string(http_status(problem)) +
                                 "[,; ].*exit code " + std::to_string(exit_code(problem)) + "\\.");
        EXPECT_TRUE(std::regex_match(*(heading + 2), numbers)) << *(heading + 2);
    }
}

TEST(Problem, ExampleOfTheDocumentIsOneOfOurs) {
    std::string text;
    for (auto const& line : lines_of_problems_md())
        if (line == "{" || !text.empty()) {
            text += line + "\n";
            if (line == "}") break;
        }
    auto const example = nlohmann::json::parse(text, nullptr, false);
    ASSERT_TRUE(example.is_object()) << text;
    nlohmann::json const again = error_from_json(example);
    EXPECT_EQ(error_from_json(example).problem, Problem::vf_in_use);
    for (auto const& [member, value] : again.items()) EXPECT_EQ(value, example[member]) << member;
}

TEST(Error, SurvivesItsJson) {
    for (int i = 0; i < problem_count; ++i) {
        Error error{static_cast<Problem>(i), "VF 3 is in use", "detach it"};
        EXPECT_EQ(error_from_json(error), error) << code(error.problem);
        error.remedy.clear();
        error.causes = {{"write sriov_numvfs", "EBUSY", "Device or resource busy"}, {"", "", ""}};
        error.violations = {{"/networks/0/a~1b", "is not known here"}, {"", "must be an object"}};
        error.revision = 7;
        nlohmann::json const document = error;
        EXPECT_EQ(error_from_json(document), error) << document;
        EXPECT_FALSE(document.contains("remedy")) << "nothing to say is left out";
        EXPECT_EQ(document["type"], "/v1/problems/" + std::string(code(error.problem)));
    }
}

TEST(Error, OfABodyThatWasReadIs422) {
    Error error{Problem::invalid_request, "the body is not valid JSON", "send JSON"};
    EXPECT_EQ(http_status(error), 400);
    EXPECT_EQ(nlohmann::json(error)["status"], 400);
    error.violations = {{"/vm", "is required"}};
    EXPECT_EQ(http_status(error), 422);
    EXPECT_EQ(nlohmann::json(error)["status"], 422);
    error.problem = Problem::unavailable;  // the store has a document that can't be read
    EXPECT_EQ(http_status(error), 503);
}

TEST(Error, IsReadFromWhateverAServerSent) {
    for (auto const* text : {"null", "[]", "5", R"("conflict")"}) {
        auto const error = error_from_json(nlohmann::json::parse(text));
        EXPECT_EQ(error.problem, Problem::internal) << text;
        EXPECT_FALSE(error.detail.empty()) << text;
    }
    EXPECT_EQ(error_from_json(nlohmann::json::object()), (Error{Problem::internal, {}, {}}));
    auto const wrong = nlohmann::json::parse(R"({"code": "from_the_future", "detail": 5,
        "remedy": null, "cause": {"call": "x"},
        "violations": [5, {"pointer": 5, "detail": "d"}]})");
    EXPECT_EQ(error_from_json(wrong), (Error{Problem::internal, {}, {}, {}, {{"", "d"}}}));
    EXPECT_EQ(error_from_json({{"code", 409}}).problem, Problem::internal);
    EXPECT_EQ(error_from_json({{"code", "CONFLICT"}}).problem, Problem::internal);
}

TEST(ErrnoCause, NamesTheErrorAsManPagesDo) {
    EXPECT_EQ(errno_cause("write sriov_numvfs", ENODEV),
              (Cause{"write sriov_numvfs", "ENODEV", "No such device"}));
    EXPECT_EQ(errno_name(EBUSY), "EBUSY");
    EXPECT_EQ(errno_cause("open", 99999), (Cause{"open", "errno 99999", "unknown error"}));
    EXPECT_EQ(errno_name(-1), "errno -1");
}

TEST(DetailWithCauses, NamesEachCallAndItsCode) {
    Error error{Problem::unavailable, "the host is silent", "wait", {}, {}};
    EXPECT_EQ(detail_with_causes(error), "the host is silent");
    error.causes = {errno_cause("connect", 111), {"the answer", "", "End of file"}};
    EXPECT_EQ(detail_with_causes(error),
              "the host is silent (connect: ECONNREFUSED) (the answer: End of file)");
}

}  // namespace
}  // namespace vfmgr
