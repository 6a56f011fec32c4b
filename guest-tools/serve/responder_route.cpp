// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/serve/responder_route.hpp"

#include <array>

namespace vfmgr::serve {
namespace {

constexpr std::array<http::PathRoute<To>, 6> responder_routes{{
    {To::info, "GET", "/responder/v1"},
    {To::open_session, "POST", "/responder/v1/sessions"},
    {To::drop_session, "DELETE", "/responder/v1/sessions/{}"},
    {To::open_stream, "POST", "/responder/v1/sessions/{}/streams"},
    {To::close_stream, "DELETE", "/responder/v1/sessions/{}/streams/{}"},
    {To::report, "PUT", "/responder/v1/sessions/{}/report"},
}};

}  // namespace

Result<http::FoundRoute<To>> responder_route(std::string_view method, std::string_view path) {
    return http::find_route<To>(responder_routes, method, path,
                                {Problem::not_found, "a responder has no such path",
                                 "GET /responder/v1 returns its version"});
}

}  // namespace vfmgr::serve
