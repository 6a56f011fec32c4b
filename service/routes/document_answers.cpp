// SPDX-License-Identifier: Apache-2.0
#include "service/routes/document_answers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/types/daemon.hpp"
#include "api/types/json.hpp"
#include "vfmgr/proof/digest.hpp"

namespace vfmgr {
namespace {

// The text between two marks of problems.md, on one line.
std::string text_between(std::string_view text, std::string_view from, std::string_view to) {
    auto const begin = text.find(from);
    if (begin == text.npos) return {};
    text.remove_prefix(begin + from.size());
    std::string found(text.substr(0, text.find(to)));
    while (found.ends_with('\n')) found.pop_back();
    std::ranges::replace(found, '\n', ' ');
    return found;
}

// problems.md has a section for each problem: "## vf-in-use", "Cause: …", "Remedy: …".
ProblemExplanation explanation_of(Problem problem, std::string_view text) {
    std::string heading(code(problem));
    std::ranges::replace(heading, '_', '-');
    auto const mark = fmt::format("\n## {}\n", heading);
    text.remove_prefix(std::min(text.find(mark) + mark.size(), text.size()));
    text = text.substr(0, text.find("\n## "));
    return {"/v1/problems/" + std::string(code(problem)),
            std::string(code(problem)),
            std::string(title(problem)),
            static_cast<std::uint16_t>(http_status(problem)),
            text_between(text, "\nCause: ", "\n\nRemedy: "),
            text_between(text, "\nRemedy: ", "\n## ")};
}

}  // namespace

http::Response document_answer(std::string body) {
    http::Response response;
    auto const digest = verify::digest_hex(body);
    response.headers = {{"ETag", fmt::format("\"{}\"", digest.substr(0, 16))},
                        {"Cache-Control", "no-cache"}};
    response.body = std::move(body);
    return response;
}

Result<http::Response> problem_explained(std::string_view problems, std::string const& name) {
    if (auto const problem = enum_value<Problem>(name))
        return document_answer(http::json_response(200, explanation_of(*problem, problems)).body);
    return fail(Problem::not_found, fmt::format("there is no problem {}", name),
                "use the `code` or the `type` of a problem");
}

}  // namespace vfmgr
