// SPDX-License-Identifier: Apache-2.0
// A host's own API below /v1/hosts/{host}: passed on unchanged, streams and long polls too. The
// host judges the request again, as of whoever sent it here.
#include "api/http/forward.hpp"
#include "service/fleet/hosts/host_calls.hpp"
#include "service/fleet/inventory/json_slices.hpp"
#include "service/fleet/routes/routes.hpp"

namespace vfmgr::fleet {
namespace {

// A host answers a long poll after 60 seconds at the latest.
constexpr std::chrono::milliseconds pass_timeout{90'000};

// What the host answers, with the host's name as its first member.
http::Response of_host(std::string const& name, http::Response answer) {
    auto const problem = answer.content_type.starts_with("application/problem");
    if (auto const text = compact_json(answer.body, {answer.body.size()}); text && !problem)
        if (is_object(*text)) answer.body = with_host(name, *text);
    return answer;
}

void pass_on(Parts const& parts, std::function<void(std::function<void()>)> const& io_post,
             Call const& call, http::Respond const& respond) {
    auto const& name = call.ids.at("host");
    auto const state = parts.registry.state();
    auto const* const host = find_record(state->hosts, name);
    if (!host) return respond(refusal(call, no_such_host(name)));
    auto target = target_of(host->record);
    if (!target) return respond(refusal(call, target.error()));
    auto const rest = call.ids.at("rest");
    auto request = http::forwarded(call.request, "/v1/" + rest);
    set_on_behalf(request, call.who);
    auto const below = "/v1/hosts/" + name;
    if (call.request.method == "GET" && rest == "events")
        return http::forward_stream(parts.pool,
                                    {.target = std::move(*target),
                                     .request = std::move(request),
                                     .received_path = call.request.path,
                                     .below = below,
                                     .post = io_post},
                                    respond);
    parts.pool.send(*target, request, pass_timeout,
                    [&call, respond, below](Result<http::Response> answer) {
                        if (!answer) return respond(refusal(call, answer.error()));
                        respond(http::forwarded_answer(std::move(*answer), below));
                    });
}

}  // namespace

void pass_to_host(Parts const& parts, Call const& call, std::string const& name,
                  http::Request request, http::Respond const& respond) {
    auto const state = parts.registry.state();
    auto const* const host = find_record(state->hosts, name);
    if (!host) return respond(refusal(call, no_such_host(name)));
    auto const target = target_of(host->record);
    if (!target) return respond(refusal(call, target.error()));
    set_on_behalf(request, call.who);
    request.headers.erase("accept-encoding");  // its answer is read here
    parts.pool.send(
        *target, request, pass_timeout, [&call, respond, name](Result<http::Response> answer) {
            if (!answer) return respond(refusal(call, answer.error()));
            respond(of_host(name, http::forwarded_answer(std::move(*answer), "/v1/hosts/" + name)));
        });
}

std::vector<FleetRoute> passing_routes(Parts const& parts,
                                       std::function<void(std::function<void()>)> io_post) {
    Endpoint endpoint{"", "/v1/hosts/{host}/{rest...}", Role::viewer};
    endpoint.audience = for_tenants_too;
    endpoint.passed_on = true;
    return {{std::move(endpoint),
             [parts, io_post = std::move(io_post)](Call const& call, http::Respond const& respond) {
                 pass_on(parts, io_post, call, respond);
             }}};
}

}  // namespace vfmgr::fleet
