// SPDX-License-Identifier: Apache-2.0
#include "service/guest/route.hpp"

#include <array>

#include "api/http/path_route.hpp"

namespace vfmgr {
namespace {

using To = GuestRoute::To;

constexpr std::array<http::PathRoute<To>, 9> guest_routes{{
    {To::config, "GET", "/guest/v1/config"},
    {To::topology, "GET", "/guest/v1/topology"},
    {To::enrol, "POST", "/guest/v1/enrolment"},
    {To::start_run, "POST", "/guest/v1/attachments/{}/runs"},
    {To::open_session, "POST", "/guest/v1/sessions"},
    {To::open_stream, "POST", "/guest/v1/sessions/{}/streams"},
    {To::close_stream, "DELETE", "/guest/v1/sessions/{}/streams/{}"},
    {To::report, "PUT", "/guest/v1/sessions/{}/report"},
    {To::run_error, "PUT", "/guest/v1/runs/{}/error"},
}};

}  // namespace

Result<GuestRoute> guest_route(std::string_view method, std::string_view path) {
    VFMGR_TRY(auto found,
              http::find_route<To>(guest_routes, method, path,
                                   {Problem::not_found, "the guest plane has no such path",
                                    "use the vf-guest version that matches the host"}));
    found.ids.resize(2);
    GuestRoute route{found.to, std::move(found.ids[0]), std::move(found.ids[1]), {}};
    if (route.to == To::config) route.query = {"revision", "wait"};
    return route;
}

}  // namespace vfmgr
