// SPDX-License-Identifier: Apache-2.0
#include "service/cli/edit_until_written.hpp"

#include <fmt/format.h>

#include "service/cli/show.hpp"

namespace vfmgr {
namespace {

Result<Found> find(Connection const& connection, std::string const& path) {
    auto response = connection.send({.path = path});
    if (!response && response.error().problem == Problem::not_found) return Found{{}, "\"0\""};
    if (!response) return fail(std::move(response.error()));
    auto const etag = response->headers.find("etag");
    return Found{std::move(response->body), etag == response->headers.end() ? "" : etag->second};
}

}  // namespace

Result<Settled> edit_until_written(Connection const& connection, Options const& options,
                                   std::string const& path,
                                   std::function<Result<std::string>(Found const&)> const& edit,
                                   Table const& shown_after) {
    constexpr int tries_max = 16;  // one of several editors wins each round
    for (int tries = 1;; ++tries) {
        VFMGR_TRY(Found const found, find(connection, path));
        VFMGR_TRY(auto body, edit(found));
        ApiRequest request{.method = "PUT", .path = path, .body = std::move(body)};
        if (!found.revision.empty()) request.headers["if-match"] = found.revision;
        auto done = change(connection, options, std::move(request), shown_after);
        if (done || done.error().problem != Problem::precondition_failed) return done;
        if (tries == tries_max) return done;
        print_sentence(fmt::format("{}; retrying the edit", done.error().detail), options);
    }
}

}  // namespace vfmgr
