// SPDX-License-Identifier: Apache-2.0
// Documents about the API itself: its description, and the explanation of each problem.
#include <fmt/format.h>

#include <algorithm>

#include "api/types/daemon.hpp"
#include "api/types/json.hpp"
#include "service/documents/documents.hpp"
#include "service/routes/api.hpp"
#include "vfmgr/proof/random_payload.hpp"

namespace vfmgr {
namespace {

// A client may keep it, and asks whether it is still the same.
http::Response document(std::string body) {
    http::Response response;
    auto const digest = verify::digest_hex(body);
    response.headers = {{"ETag", fmt::format("\"{}\"", digest.substr(0, 16))},
                        {"Cache-Control", "no-cache"}};
    response.body = std::move(body);
    return response;
}

http::Response show_openapi(Call const&, Snapshot const&) {
    static auto const response = document(std::string(documents::openapi));
    return response;
}

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
ProblemExplanation explanation_of(Problem problem) {
    std::string heading(code(problem));
    std::ranges::replace(heading, '_', '-');
    auto text = documents::problems;
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

Result<http::Response> show_problem(Call const& call, Snapshot const&) {
    auto const& name = call.ids.at("code");
    if (auto const problem = enum_value<Problem>(name))
        return document(json_response(200, explanation_of(*problem)).body);
    return fail(Problem::not_found, fmt::format("there is no problem {}", name),
                "use the `code` or the `type` of a problem");
}

}  // namespace

// A problem is explained to anyone: who has no token yet gets one, too.
std::vector<Route> document_routes() {
    return {
        {"GET", "/v1/openapi.json", Role::viewer, show_openapi, {}, for_tenants_too},
        {"GET", "/v1/problems/{code}", anyone, show_problem},
    };
}

}  // namespace vfmgr
