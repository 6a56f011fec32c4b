// SPDX-License-Identifier: Apache-2.0
// All that is desired, as one document.
#include "api/types/desired.hpp"

#include "api/types/json.hpp"
#include "service/routes/api.hpp"
#include "vfmgr/plan/plan_desired.hpp"

namespace vfmgr {
namespace {

http::Response show_desired(Call const&, Snapshot const& now) {
    auto const document = document_of(*now.desired);
    return with_etag(json_response(200, document), revision_of(document));
}

Result<Change> put_desired(Call const& call) {
    VFMGR_TRY(auto document, from_json_text<DesiredDocument>(call.request.body));
    VFMGR_TRY(bool const prune, is_true(call, "prune"));
    return Change{ReplaceDesired{std::move(document), prune ? Unnamed::remove : Unnamed::keep},
                  show_desired};
}

}  // namespace

std::vector<Route> desired_routes() {
    return {
        {"GET", "/v1/desired", Role::viewer, show_desired},
        {"PUT", "/v1/desired", Role::admin, put_desired, {"dry_run", "prune"}},
    };
}

}  // namespace vfmgr
