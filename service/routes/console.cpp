// SPDX-License-Identifier: Apache-2.0
// The web console's files. Anyone may load them: they hold nothing of the host, and the page signs
// in by the API.
#include <fmt/format.h>

#include "api/http/gzip.hpp"
#include "service/routes/api.hpp"

namespace vfmgr {
namespace {

constexpr auto index_file = "index.html";

// Nothing but the daemon's own files runs, and no text of a guest ever becomes markup.
constexpr auto content_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
    "require-trusted-types-for 'script'";

Error no_console(Console const& console) {
    if (console.crowded)
        return {Problem::not_found,
                fmt::format("{} has more than {} entries, so it is no folder of the web console",
                            console.folder, console_entries_max),
                "set folder in [console] of /etc/vfmgr/vfmgr.toml, or reinstall vfmgr-web"};
    return {
        Problem::not_found,
        fmt::format("the web console is not installed: {} has no {}", console.folder, index_file),
        "install the package on this host: apt-get install vfmgr-web; the API is at /v1"};
}

http::Response response_of(ConsoleFile const& file, Call const& call) {
    http::Response response;
    response.content_type = file.content_type;
    response.text = file.text;
    response.headers = {
        {"Cache-Control", file.stays ? "public, max-age=31536000, immutable" : "no-cache"},
        {"Content-Security-Policy", content_policy},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"ETag", file.etag},
        {"Referrer-Policy", "no-referrer"}};
    if (!file.compressed) return response;
    response.headers["Vary"] = "Accept-Encoding";
    auto const accepts = call.request.headers.find("accept-encoding");
    if (accepts == call.request.headers.end() || !http::accepts_gzip(accepts->second))
        return response;
    response.text = file.compressed;
    response.headers["Content-Encoding"] = "gzip";
    response.headers["ETag"].insert(file.etag.size() - 1, "-gzip");
    return response;
}

Query<http::Response> show_file(ConsoleQuery& query, Call const& call, std::string const& name) {
    return query.query().then(
        [call, name](std::shared_ptr<Console const> const& console) -> Result<http::Response> {
            auto const& files = console->files;
            if (auto const file = files.find(name); file != files.end())
                return response_of(file->second, call);
            if (!files.contains(index_file)) return fail(no_console(*console));
            return fail(Problem::not_found, fmt::format("there is no /{}", name),
                        "the console is at /, and GET /v1 lists the paths of the API");
        });
}

}  // namespace

std::vector<Route> console_routes(ConsoleQuery& query) {
    return {
        {"GET",
         "/",
         anyone,
         [&query](Call const& call, Snapshot const&) { return show_file(query, call, index_file); },
         {},
         for_refused_too},
        {"GET",
         "/{file}",
         anyone,
         [&query](Call const& call, Snapshot const&) {
             return show_file(query, call, call.ids.at("file"));
         },
         {},
         for_refused_too},
    };
}

}  // namespace vfmgr
