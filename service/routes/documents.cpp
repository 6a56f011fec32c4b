// SPDX-License-Identifier: Apache-2.0
// Documents about the API itself: its description, and the explanation of each problem.
#include "service/documents/documents.hpp"
#include "service/routes/api.hpp"
#include "service/routes/document_answers.hpp"

namespace vfmgr {
namespace {

http::Response show_openapi(Call const&, Snapshot const&) {
    static auto const response = document_answer(std::string(documents::openapi));
    return response;
}

Result<http::Response> show_problem(Call const& call, Snapshot const&) {
    return problem_explained(documents::problems, call.ids.at("code"));
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
